"""Write a data set of your own and measure retrieval on it. Usage: python examples/own_data.py FOLDER [EMBEDDER]."""

import json
import subprocess
import sys
from pathlib import Path

if len(sys.argv) < 2:
    sys.exit(__doc__)
folder, embedder = Path(sys.argv[1]), (sys.argv[2:] or ["minilm"])[0]
turns = [
    {"session": "1", "id": "1", "speaker": "Ann", "date": "2024-05-03", "text": "My grey cat is called Pixel."},
    {"session": "1", "id": "2", "speaker": "Ben", "date": "2024-05-03", "text": "I am learning to bake bread."},
    {"session": "2", "id": "3", "speaker": "Ann", "date": "2024-05-10", "text": "The vet saw the cat's ear."},
]
questions = [
    {"id": "q1", "question": "What is the cat called?", "answers": ["Pixel"], "evidence": ["1"]},
    {"id": "q2", "question": "When did the vet see the cat?", "answers": ["2024-05-10"], "evidence": ["3"]},
]
folder.mkdir(parents=True, exist_ok=True)
for name, rows in (("turns", turns), ("questions", questions)):
    lines = [json.dumps({"conversation": "ann-and-ben", **row}) for row in rows]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
data = ["dataset=custom", f"dataset.data_dir={folder}"]
run = ["memory=rag", "memory.k=2", "mode=retrieval_only", f"embedder={embedder}", f"run_dir={folder / 'run'}"]
for command in (["inspect_data", *data], ["run", *data, *run]):  # without mode=retrieval_only, it answers too
    subprocess.run([sys.executable, "-m", "eval", *command], check=True)
