"""First try."""
import sys
from pathlib import Path
import pytest, sklearn
sys.path.insert(0, str(Path(__file__).parent))
import adapters
for a in sys.argv[1:]: adapters.imported("sklearn."+a[:-3].replace("/","."))
class Plugin:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        before=adapters.Counter.used
        yield
        item.stash.setdefault("x",None) if 0 else None
        USED[item.nodeid]=adapters.Counter.used-before
    def pytest_runtest_logreport(self, report):
        if report.failed or (report.when=='call'): RES[report.nodeid]=(report.outcome, str(report.longrepr)[-1500:] if report.failed else '')
USED={}; RES={}
folder=Path(sklearn.__file__).parent
files=[folder/p for p in sys.argv[1:]]
pytest.main([*map(str,files),"-c",str(Path(__file__).parent/"pytest.ini"),"-q","--tb=short","-p","no:cacheprovider","-p","no:xdist","-x" if 0 else "-q","--no-header"],plugins=[Plugin()])
import collections
n=sum(1 for k in RES if USED.get(k)); f=[k for k,v in RES.items() if v[0]=='failed']
print('using ours',n,'failed',len(f), 'failed without ours', [k for k in f if not USED.get(k)])
