import type { Flag } from '../../workflows/contracts/flags.ts';
import type { FileTree } from '../sandbox/file-tree.ts';
import type { EgressRow } from './rows.ts';

/** Hosts of anyone's repositories and data sets, where most published solutions are, each with the names below it. */
const publicHosts = [
  'archive.org',
  'bitbucket.org',
  'codeberg.org',
  'github.com',
  'githubusercontent.com',
  'gitlab.com',
  'hf.co',
  'huggingface.co',
  'softwareheritage.org',
];
const longestFile = 256 * 1024;

/**
 * Flags what an agent loaded from hosts where its task's solution may be: those that the reference solution names, and public
 * hosts of repositories. What it loaded there is unknown, because it is encrypted.
 */
export function flagSolutionHosts(rows: readonly EgressRow[], solution: FileTree): readonly Flag[] {
  const named = hostsIn(solution);
  const isSuspect = (host: string): boolean =>
    named.has(host) || publicHosts.some((one) => host === one || host.endsWith(`.${one}`));
  return rows
    .filter(({ decision, bytesIn, host }) => decision === 'allowed' && bytesIn > 0 && isSuspect(host))
    .sort((one, other) => other.bytesIn - one.bytesIn)
    .map(({ host, requests, bytesIn }) => ({
      trick: 'solution-host',
      evidence: `${bytesIn} bytes from ${host} in ${requests} ${requests === 1 ? 'request' : 'requests'}`,
    }));
}

function hostsIn(solution: FileTree): ReadonlySet<string> {
  const texts = [...solution.values()]
    .filter(({ bytes }) => bytes.byteLength <= longestFile)
    .map(({ bytes }) => new TextDecoder().decode(bytes).toLowerCase());
  return new Set(
    texts.flatMap((text) => [...text.matchAll(/\bhttps?:\/\/([a-z0-9.-]+)/g)].map(([, host = '']) => host)),
  );
}
