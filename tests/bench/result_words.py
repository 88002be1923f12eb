"""Words of a RESULT line that all benches write alike."""


def excluded(*entries):
    """What a bench measured, or could have, and no target counts: `rows:14(links-not-shaped),cases:3(not-asked)`, or `none`.

    entries  (how many, of what, the rule in one word); none of it: left out"""
    words = [f"{what}:{count}({rule})" for count, what, rule in entries if count]
    assert not any(" " in word for word in words), words
    return ",".join(words) or "none"
