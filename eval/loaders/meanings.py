"""What the counts of a loaded data set mean, for people who look at it."""

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

#: Key of ``LoadedData.notes`` -> meaning.
NOTES: Mapping[str, str] = {
    "pinned": "the checksum is that of the published file",
    "sample": "the project's own small sample, not the data set",
    # LoCoMo
    "label_problems": "questions whose published label an audit found wrong, by kind",
    "adversarial_with_answer": "category 5 with a true answer beside the false one",
    "adversarial_without_answer": "category 5 with the false answer alone",
    "dates_without_session": "dates of sessions that do not exist",
    "empty_sessions": "sessions without a turn",
    "evidence_ids_unresolved": "ids in evidence strings that name no turn",
    "evidence_repeated": "ids that a question names twice",
    "evidence_strings": "entries in the questions' evidence lists",
    "evidence_strings_irregular": "of these, not the id of a turn as written",
    "evidence_strings_repaired": "of these, ids found by pattern",
    "number_answers": "answers that are numbers; written out",
    "questions_without_evidence": "in the whole file",
    # HotpotQA-20
    "yes_no_answers": "questions answered by yes or no",
    "paragraphs_per_pool": "distinct paragraphs of each pool",
    # BioASQ-20
    "usable_questions": "factoid and list questions with snippets and an answer",
    "usable_by_category": "of these, by category",
    "repeated_snippets_dropped": "snippets that a question gives twice",
    "skipped_summary": "questions that ask for a text",
    "skipped_yesno": "questions answered by yes or no",
    "skipped_without_answer": "factoid and list questions without exact answer",
    "skipped_without_snippets": "factoid and list questions without snippet",
    # PerLTQA
    "sizes_as_published": "both files have the published number of characters",
    "characters_without_memory": "characters with questions alone; left out",
    "characters_without_questions": "characters with a memory alone; not ingested",
    "questions_without_memory": "questions on characters without memory",
    "questions_without_answer_dropped": "questions without question or answer text",
    "repeated_questions": "questions that stand more than once in their group; all asked",
    "empty_profile_fields": "profile fields without a value; left out",
    "lines_without_speaker": "dialogue lines joined to the line before",
    "sections_from_text": "relationships stored as the text of a Python dict; parsed",
    "sections_unreadable": "relationships stored as text that cannot be parsed; left out",
    "undated_events": "events whose time names no year; put beside their siblings",
    "undated_dialogue_blocks": "dialogues whose time names no year; likewise",
    "unreadable_references": "references that are no list and no id",
    "unresolved_references": "references to memories that are not there",
    "low_support_by_section": "selected questions whose answer stands mostly not in the memory they name",
}
