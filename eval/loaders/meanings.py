"""Meanings of the counts that every loader gives, for inspection of a data set."""

from collections.abc import Mapping

#: Key of ``LoadedData.counts`` -> meaning.
COUNTS: Mapping[str, str] = {
    "conversations": "memories that are built",
    "sessions": "of all conversations",
    "turns": "what is written to a memory, one after the other",
    "questions": "asked of these memories",
    "questions_by_category": "category number: questions",
    "captions": "turns with the caption of a picture",
    "captions_with_img_url": "of these, with an address of the picture too",
    "evidence_ids": "turns that questions name as gold evidence",
    "unresolved_evidence_ids": "ids among the evidence that name no turn; not used",
    "questions_without_evidence": "left out of evidence metrics",
}

#: Key of ``LoadedData.notes`` -> meaning, for keys that all loaders have; each loader declares its own next to these.
NOTES: Mapping[str, str] = {
    "pinned": "the checksum is that of the published file",
    "sample": "the project's own small sample, not the data set",
}
