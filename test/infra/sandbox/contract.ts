import { after, before, describe } from 'node:test';
import type { LimitHit, Sandbox, SandboxLabels, SandboxProvider, SandboxSpec } from '../../../infra/sandbox/sandbox.ts';
import { changesContract } from './contract-changes.ts';
import { filesContract } from './contract-files.ts';
import { hostileContract } from './contract-hostile.ts';
import { lifeContract } from './contract-life.ts';
import { processContract } from './contract-processes.ts';
import { streamContract } from './contract-streams.ts';
import { timeContract } from './contract-time.ts';

/** A kind of sandbox that the contract is checked for. */
export interface Subject {
  readonly title: string;
  readonly image: string;
  /** Opens a new provider of this stack, as another worker process would. */
  open(stack: string): SandboxProvider;
  /** The directory in which a worker process finds the same sandboxes. */
  readonly root: string;
  /** Kills the process that records the end of another, as a failing host might. */
  killRecorder(sandbox: string, key: string): Promise<void>;
  /** Set if only programs that an image holds can be mounted. Its own tests then show that there is no network. */
  readonly programsInImage?: true;
  /**
   * Set if a sandbox of another kind, for which the whole contract is checked, runs the same scripts. What those do alone, and
   * takes long, is then not checked again.
   */
  readonly scriptsChecked?: true;
  /** Limits that this kind reports when a process exceeds them. */
  readonly evidence: readonly LimitHit[];
}

/** One stack on one provider, and the sandboxes that a test makes in it. */
export interface Bench {
  readonly subject: Subject;
  readonly stack: string;
  readonly provider: SandboxProvider;
  readonly signal: AbortSignal;
  spec(name: string, changes?: Partial<SandboxSpec>, labels?: Partial<SandboxLabels>): SandboxSpec;
  /** Creates a sandbox that is removed after all tests. */
  make(name: string, changes?: Partial<SandboxSpec>): Promise<Sandbox>;
}

export const foreground = { env: {}, account: 'agent', timeoutMs: 120_000, maxOutputBytes: 2 ** 20 } as const;
export const sh = (script: string): ['sh', '-c', string] => ['sh', '-c', script];

/** Most tests only wait, so they run concurrently. */
const concurrency = 4;
const limits = { cpus: 1, memoryMb: 256, diskMb: 64, pids: 64 };

/** Checks, on real sandboxes, everything that the port promises. */
export function sandboxContract(subject: Subject): void {
  describe(subject.title, { concurrency }, () => {
    const stack = `contract-${process.pid}-${Date.now().toString(36)}`;
    const provider = subject.open(stack);
    const made = new Set<string>();
    const spec: Bench['spec'] = (name, changes = {}, labels = {}) => {
      const own = {
        stack,
        run: 'run',
        rollout: name,
        epoch: 1,
        purpose: 'agent' as const,
        expiresAtMs: Date.now() + 600_000,
      };
      const fullName = `${stack}-${name}`;
      made.add(fullName);
      const fixed = { name: fullName, image: subject.image, workdir: '/workspace', mounts: [] };
      return { ...fixed, ...limits, ...changes, labels: { ...own, ...labels } };
    };
    const { signal } = new AbortController();
    const make: Bench['make'] = (name, changes) => provider.ensure(spec(name, changes), signal);
    const bench: Bench = { subject, stack, provider, signal, spec, make };

    before(async () => {
      await provider.describe();
    });
    after(async () => {
      await Promise.all([...made].map((name) => provider.remove(name)));
      await provider.close();
    });
    lifeContract(bench);
    filesContract(bench);
    changesContract(bench);
    processContract(bench);
    timeContract(bench);
    streamContract(bench);
    hostileContract(bench);
  });
}
