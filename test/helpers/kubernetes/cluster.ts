import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { testRunVariable } from '../../runner/leftovers.ts';
import type { Availability } from '../../runner/need.ts';
import { optionalData } from '../optional-data.ts';
import { replaceImage } from '../sandbox/replace-image.ts';
import { repositoryRoot } from '../sources.ts';

const run = promisify(execFile);

/** The image of the tests' sandboxes, and the one with the programs that they mount. */
export const taskImage = 'temper-tasks:bookworm';
export const programsImage = 'temper-programs:test';

const startAttempts = 3;

/** A Kubernetes cluster on this machine for the tests of one run. */
export interface Cluster {
  readonly kubeconfig: string;
  close(): Promise<void>;
}

/** The program that starts the cluster; `TEMPER_TEST_KUBERNETES` names another. */
const program = process.env.TEMPER_TEST_KUBERNETES ?? optionalData.referenceKubernetes;

/** Whether the tests that need a Kubernetes cluster can run here. A cluster is never built for them: that takes minutes. */
export function probeKubernetes(docker: Availability): Availability {
  if (!existsSync(program)) return { usable: false, reason: `this machine lacks ${program}` };
  if (process.getuid?.() !== 0) return { usable: false, reason: 'a cluster needs root' };
  if (!docker.usable) return { usable: false, reason: `its images come from Docker, and ${docker.reason}` };
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const programs = join(cache, 'temper-reference-kubernetes/bin');
  const isBuilt = existsSync(programs) && readdirSync(programs).some((name) => name.startsWith('.built-'));
  if (isBuilt || existsSync(join(dirname(program), 'programs.tar.xz'))) return { usable: true };
  return { usable: false, reason: `the cluster's programs are not built; \`${program} build\` does it` };
}

/** Copies images of the local Docker into the cluster. */
export async function loadImages(...images: readonly string[]): Promise<void> {
  await run(program, ['load', ...images]);
}

/** Runs kubectl on the cluster, and returns what it prints. */
export async function kubectl(...words: readonly string[]): Promise<string> {
  const { stdout } = await run(program, ['kubectl', ...words], { maxBuffer: 2 ** 26 });
  return stdout;
}

/** Starts a cluster that has the tests' images, or uses the one that runs. */
export async function startKubernetes(): Promise<Cluster> {
  const wasUp = await run(program, ['status']).then(
    () => true,
    () => false,
  );
  if (!wasUp) await bringUp();
  const { stdout } = await run(program, ['kubeconfig']);
  let closed: Promise<unknown> | undefined;
  const close = async (): Promise<void> => {
    if (!wasUp) closed ??= run(program, ['down']);
    await closed;
  };
  try {
    await replaceImage(programsImage, () =>
      run(process.execPath, [join(repositoryRoot, 'infra/images/programs.ts'), programsImage]),
    );
    await loadImages(taskImage, programsImage);
  } catch (error) {
    await close();
    throw error;
  }
  return { kubeconfig: stdout.trim(), close };
}

/** Sends a signal to a process of the cluster's node, such as `kubelet` or `kube-apiserver`. */
export async function signalComponent(name: string, signal: 'STOP' | 'CONT'): Promise<void> {
  const script =
    'for p in /proc/[0-9]*; do if [ "$(cat "$p/comm" 2>/dev/null)" = "$1" ]; then kill -"$2" "$(basename "$p")" && found=1; fi; done; [ "$found" ]';
  await run(program, ['inside', 'sh', '-c', script, 'signal', name, signal]);
}

/** Sends a signal to the process of the container runtime that holds the containers of one Pod. */
export async function signalShimOf(uid: string, signal: 'STOP' | 'CONT'): Promise<void> {
  const script = `
    for p in /proc/[0-9]*; do
      grep -qs "pod$1" $p/cgroup || continue
      parent=$(sed -n 's/^PPid:[[:space:]]*//p' $p/status)
      [ "$(cat /proc/$parent/comm)" = containerd-shim ] && exec kill -"$2" $parent
    done
    exit 1`;
  await run(program, ['inside', 'sh', '-c', script, 'signal', uid.replaceAll('-', '.'), signal]);
}

/** Breaks the stream of every command between the kubelet and the container runtime, as a restart of the runtime does. */
export async function cutRuntimeStreams(): Promise<void> {
  const script = `
    port=$(ss -tlnpH | sed -n 's/.* 127.0.0.1:\\([0-9]*\\) .*"containerd".*/\\1/p' | head -n 1)
    [ "$port" ] && [ "$(ss -tnH sport = :$port)" ] || exit 1
    ss -K "sport = :$port or dport = :$port" >/dev/null 2>&1
    [ -z "$(ss -tnH state established sport = :$port)" ]`;
  await run(program, ['inside', 'sh', '-c', script]);
}

/** Ends the cluster with all that runs in it. */
export async function takeDown(): Promise<void> {
  await run(program, ['down']);
}

/** Starts an empty cluster, which has the images that an earlier one was given. It may outlive the test, as that one might. */
export async function bringUp(): Promise<void> {
  const { [testRunVariable]: _ofThisRun, ...env } = process.env;
  for (let attempt = 1; ; attempt += 1) {
    try {
      // The parts of a cluster are Go programs with small heaps, whose collections cost more than memory here.
      await run(program, ['up'], { env: { GOGC: '400', ...env } });
      return;
    } catch (error) {
      // Parts of the control plane give up on a busy machine, and the whole cluster ends with them.
      if (attempt === startAttempts) throw error;
    }
  }
}

/** Starts a registry in the node that has no image `absent/…`, refuses `private/…`, and never answers for `silent/…`. */
export async function startRegistry(): Promise<AsyncDisposable & { readonly address: string }> {
  const script = `
    const server = require('node:http').createServer(({ url }, response) => {
      if (url.includes('/silent/')) return;
      response.writeHead(url.includes('/private/') ? 403 : url === '/v2/' ? 200 : 404).end();
    });
    server.listen(0, '127.0.0.1', () => console.log(server.address().port));
    process.stdin.resume().on('end', () => process.exit());`;
  const child = spawn(program, ['inside', process.execPath, '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    // Only for this name does the node speak HTTP without TLS.
    address: `localhost:${port.toString().trim()}`,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await ended;
    },
  };
}
