import time
from pathlib import Path
from eval.audit.config import load_config
from eval.audit.scores import *
from eval.audit.readings import *
if __name__=='__main__':
    t=time.time(); runs=[]
    for r in score_all(load_catalogue().runs(), load_config(), Path('results/cache/audit'), 2): runs.append(r); print(r.entry.name, round(time.time()-t,1))
    for r in runs:
        out=[]
        for m in ('f1_gam','f1_squad','f1_set','judge'):
            e=estimate(r, Reading(m,'printed','question'), 0); out.append(None if e is None else round(e.value,1))
        print(r.entry.name, out, dict(r.entry.check))
