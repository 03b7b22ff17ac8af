"""A script that takes its batches from futures, for tests of several folders."""

MAPPED = """
    import time
    from concurrent.futures import ThreadPoolExecutor
    def load(number):
        time.sleep(0.02)
        return number
    with ThreadPoolExecutor(2) as pool:
        got = []
        for item in pool.map(load, range(300)):
            got.append(item)
            time.sleep(0.003)
    print(got == list(range(300)))
"""
