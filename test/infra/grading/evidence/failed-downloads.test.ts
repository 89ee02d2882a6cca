import assert from 'node:assert/strict';
import { it } from 'node:test';
import { failedDownloads } from '../../../../infra/grading/evidence/failed-downloads.ts';

const lines: Readonly<Record<string, readonly string[]>> = {
  'curl: (6) Could not resolve host: pypi.org': ['pypi.org'],
  "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com": ['github.com'],
  'curl: (7) Failed to connect to pypi.org port 443 after 3 ms: Could not connect to server': ['pypi.org'],
  'wget: unable to resolve host address ‘deb.debian.org’': ['deb.debian.org'],
  "  Temporary failure resolving 'deb.debian.org'": ['deb.debian.org'],
  'npm error getaddrinfo EAI_AGAIN registry.npmjs.org': ['registry.npmjs.org'],
  'ERROR: No matching distribution found for pytest==8.0': ['pytest'],
  "urllib3: HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded with url: /": ['pypi.org'],
  'Get "https://proxy.golang.org/x": dial tcp: lookup proxy.golang.org on 10.0.0.2:53: no such host': [
    'proxy.golang.org',
  ],
  '<urlopen error [Errno -3] Temporary failure in name resolution>': ['anything'],
  'downloaded 3 files from pypi.org': [],
  'Failed to connect to the database': [],
};

for (const [line, wanted] of Object.entries(lines)) {
  it(`reads ${wanted.length === 0 ? 'no failed download' : `the failed download of ${wanted}`} in ${line}`, () => {
    assert.deepEqual(failedDownloads(`before\n${line}\nafter\n`), wanted);
  });
}

it('reads a long log without line ends in time', () => {
  for (const text of ['Could not resolve host: ', 'Failed to connect to a.', 'a.a.'])
    assert.ok(failedDownloads(text.repeat(2 ** 20)).length <= 1, text);
});
