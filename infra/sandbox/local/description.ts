import type { SandboxDescription } from '../sandbox.ts';
import { runsAsRoot } from './accounts.ts';
import { findHierarchy } from './control-group.ts';

/** Describes what local sandboxes protect on this host, and what they do not. */
export function describeConfinement(
  program: string,
): Pick<SandboxDescription, 'summary' | 'protects' | 'doesNotProtect'> {
  const asRoot = runsAsRoot();
  return {
    summary: asRoot
      ? `${program}: namespaces and a real uid per sandbox`
      : `${program}: user, pid, mount and network namespaces`,
    protects: [
      "the host's files, processes and network",
      'other sandboxes',
      'hidden tests, control files and logs, from the agent',
      'the host from processes that would outlive their sandbox',
    ],
    doesNotProtect: [
      'against kernel bugs: the kernel is shared',
      'CPU: no share is enforced',
      'the disk immediately: the total is checked once a second, less often with many sandboxes; a single file is limited at once',
      ...(findHierarchy()
        ? []
        : [
            'memory and processes of a sandbox as a whole: memory is checked once a second, less often with many sandboxes; the kernel limits each process',
          ]),
      ...(asRoot ? [] : ['the files of hidden tests from the tested code: both run under one uid']),
    ],
  };
}
