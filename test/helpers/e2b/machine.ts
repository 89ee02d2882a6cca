import { mkdtempSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import Docker from 'dockerode';
import { programsDirectory } from '../../../infra/sandbox/e2b/scripts.ts';
import type { SandboxMount } from '../../../infra/sandbox/sandbox.ts';
import { until } from '../until.ts';

/** A machine of the stand-in: a container without network, whose first process is the stand-in's envd. */
export interface Machine {
  /** The socket of its envd on this host. */
  readonly socket: string;
  /** Bytes that were written in it. */
  usedBytes(): Promise<number>;
  /** Freezes everything in it, memory and all. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  end(): Promise<void>;
}

export interface Template {
  readonly image: string;
  readonly cpuCount: number;
  readonly memoryMB: number;
  /** Default: a recent one. */
  readonly envdVersion?: string;
  /** The programs that the template holds. */
  readonly programs?: readonly SandboxMount[];
}

const inside = '/envd';

export async function startMachine(id: string, template: Template): Promise<Machine> {
  const docker = new Docker();
  const directory = mkdtempSync(join(tmpdir(), 'e2b-'));
  const programs = (template.programs ?? []).map(
    ({ source, program }) => `${source}:${programsDirectory}/${program?.name}-${program?.version}:ro`,
  );
  const container = await docker.createContainer({
    name: `e2b-${id}`,
    Image: template.image,
    User: '0:0',
    Entrypoint: [],
    Cmd: [`${inside}/node/${process.execPath.split('/').at(-1)}`, `${inside}/program/envd.ts`, `${inside}/run/socket`],
    HostConfig: {
      NetworkMode: 'none',
      Init: true,
      Memory: template.memoryMB * 2 ** 20,
      MemorySwap: template.memoryMB * 2 ** 20,
      NanoCpus: template.cpuCount * 1e9,
      PidsLimit: 1_024,
      Binds: [
        `${directory}:${inside}/run`,
        `${dirname(process.execPath)}:${inside}/node:ro`,
        `${import.meta.dirname}:${inside}/program:ro`,
        ...programs,
      ],
    },
  });
  await container.start();
  const socket = join(directory, 'socket');
  await until(async () => (await answers(socket)) || (await hasEnded(container)));
  return {
    socket,
    usedBytes: async () => {
      const { SizeRw } = (await container.inspect({ size: true } as object)) as { readonly SizeRw?: number };
      return SizeRw ?? 0;
    },
    pause: async () => void (await until(() => pauses(container))),
    resume: async () => void (await container.unpause()),
    end: async () => {
      await container.remove({ force: true }).catch(() => undefined);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Freezes a container. Returns false if the runtime could not in its few seconds, as on a busy machine; it thaws it then. */
const pauses = (container: Docker.Container): Promise<boolean> =>
  container.pause().then(
    () => true,
    (error: unknown) => {
      if (String(error).includes('unable to freeze')) return false;
      throw error;
    },
  );

const answers = (socketPath: string): Promise<boolean> =>
  new Promise((resolve) => {
    get({ socketPath, path: '/health' }, (response) => {
      response.resume();
      resolve(true);
    }).on('error', () => resolve(false));
  });

async function hasEnded(container: Docker.Container): Promise<boolean> {
  const { State } = await container.inspect();
  if (State.Running) return false;
  throw new Error(`expected the stand-in's envd to run, got ${String(await container.logs({ stderr: true }))}`);
}
