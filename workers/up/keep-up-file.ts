import type { Config } from '../../infra/config.ts';
import { processIdentity } from '../../infra/process/process-identity.mjs';
import type { PartStatus } from './part.ts';
import { removeUpFile, type StackAddresses, type UpFile, writeUpFile } from './up-file.ts';

/** Keeps `up.json` in step with the parts; writes follow each other, so that the last one wins. */
export function keepUpFile(config: Config, addresses: StackAddresses, parts: () => readonly PartStatus[]) {
  let last = Promise.resolve();
  const write = (): Promise<void> => writeUpFile(config.paths.up, snapshot(config, addresses, parts()));
  return {
    changed(): void {
      last = last.then(write);
      // A full disk must not stop the stack; the file is then old, and the next change writes it again.
      last = last.catch(() => undefined);
    },
    /** The file says what was last changed. */
    written: (): Promise<void> => last,
    async remove(): Promise<void> {
      await last;
      await removeUpFile(config.paths.up);
    },
  };
}

function snapshot(config: Config, addresses: StackAddresses, parts: readonly PartStatus[]): UpFile {
  return {
    supervisor: identityOf(process.pid) ?? { pid: process.pid, startedAt: '' },
    addresses,
    ports: { temporal: config.temporalPort, ui: config.uiPort, policy: config.policyPort },
    parts: parts.map(({ pid, ...part }) => ({ ...part, process: pid === null ? null : identityOf(pid) })),
  };
}

function identityOf(pid: number): { pid: number; startedAt: string } | null {
  const { startedAt } = processIdentity(pid);
  return startedAt === undefined ? null : { pid, startedAt };
}
