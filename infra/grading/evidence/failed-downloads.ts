const host = `([A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?)`;

/** The lines in which package managers and clients report a download that failed, with the host or the package. */
const reports: readonly RegExp[] = [
  // curl, git, cargo: `curl: (6) Could not resolve host: pypi.org`
  new RegExp(`[Cc]ould not resolve (?:host|proxy): ${host}`, 'g'),
  // curl: `curl: (7) Failed to connect to pypi.org port 443`
  new RegExp(`Failed to connect to ${host} port \\d+`, 'g'),
  // wget: `wget: unable to resolve host address ‘pypi.org’`, busybox: `wget: bad address 'pypi.org'`
  new RegExp(`(?:unable to resolve host address|bad address) [‘'"]${host}`, 'g'),
  // apt: `Temporary failure resolving 'deb.debian.org'`, `Could not resolve 'deb.debian.org'`
  new RegExp(`(?:Temporary failure resolving|Could not resolve) '${host}'`, 'g'),
  // npm and Node: `getaddrinfo ENOTFOUND registry.npmjs.org`, `getaddrinfo EAI_AGAIN registry.npmjs.org`
  new RegExp(`getaddrinfo (?:ENOTFOUND|EAI_AGAIN) ${host}`, 'g'),
  // pip: `No matching distribution found for pytest==8.0`
  /No matching distribution found for ([\w.\-[\]]{1,100})/g,
  // Python: `HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded`
  new RegExp(`ConnectionPool\\(host='${host}', port=\\d+\\): Max retries exceeded`, 'g'),
  // Go: `dial tcp: lookup proxy.golang.org on 127.0.0.11:53: no such host`
  new RegExp(`dial tcp: lookup ${host}(?: on \\S{1,60})?: `, 'g'),
];
/** Reports that name neither. */
const nameless = /Temporary failure in name resolution|Network is unreachable|Unable to fetch some archives/;

const mostNames = 20;

/** Returns the hosts and packages that a log reports as not downloaded. The code under test may print such lines, too. */
export function failedDownloads(log: string): readonly string[] {
  const named = reports.flatMap((report) => [...log.matchAll(report)].map(([, name = '']) => name.toLowerCase()));
  const rest = nameless.test(log) ? ['anything'] : [];
  return [...new Set([...named, ...rest])].slice(0, mostNames);
}
