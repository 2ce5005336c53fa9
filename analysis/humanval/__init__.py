"""HUMANVAL sets: drawn, compared with what is trained on, judged in a study, frozen, and proved again."""
