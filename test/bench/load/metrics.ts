import { readdir, readFile, readlink } from 'node:fs/promises';

/** Samples of Prometheus metrics: the name of each, its labels as they are written, and its value. */
export type Metrics = readonly { readonly name: string; readonly labels: string; readonly value: number }[];

const sample = /^([a-z_:]+)(?:\{(.*)\})? ([-+.\deE]+|NaN|[+-]Inf)$/;
/** Operations of the server's persistence that only read. */
const readingOperation = /operation="(?:Get|List|Read|Watch|Count|Assert|Initialize)/;

export async function readMetrics(port: number): Promise<Metrics> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  const lines = (await response.text()).split('\n');
  return lines.flatMap((line) => {
    const [, name, labels = '', value] = sample.exec(line) ?? [];
    return name === undefined ? [] : [{ name, labels, value: Number(value) }];
  });
}

export function sumOf(metrics: Metrics, name: string, labels: (labels: string) => boolean = () => true): number {
  return metrics.filter((one) => one.name === name && labels(one.labels)).reduce((sum, { value }) => sum + value, 0);
}

/** Counts the writes that a Temporal server has made to its database since its start. */
export const writesOf = (metrics: Metrics): number =>
  sumOf(metrics, 'persistence_requests', (labels) => !readingOperation.test(labels));

/** Counts the state transitions of workflows that a Temporal server has made since its start. */
export const transitionsOf = (metrics: Metrics): number => sumOf(metrics, 'state_transition_count_count');

/** Returns the resource that keeps a host from admitting more rollouts. */
export const heldBackBy = (host: Metrics): string => {
  const held = host.find(({ name, value }) => name === 'temper_host_holds_back' && value === 1);
  return /resource="(\w+)"/.exec(held?.labels ?? '')?.[1] ?? 'no resource that the host knows';
};

/** Finds the port at which the dev server serves its metrics: it chooses a free one, which it does not print. */
export async function metricsPortOf(pid: number): Promise<number> {
  for (const port of await listeningPorts(pid)) {
    const metrics = await readMetrics(port).catch((): Metrics => []);
    if (metrics.some(({ name }) => name === 'persistence_requests')) return port;
  }
  throw new Error(`expected the Temporal server (process ${pid}) to serve metrics at one of its ports, found none`);
}

/** Lists the TCP ports at which a process listens. */
async function listeningPorts(pid: number): Promise<number[]> {
  const handles = await readdir(`/proc/${pid}/fd`);
  const links = await Promise.all(handles.map((handle) => readlink(`/proc/${pid}/fd/${handle}`).catch(() => '')));
  const sockets = new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
  const table = `${await readFile('/proc/net/tcp', 'utf8')}${await readFile('/proc/net/tcp6', 'utf8').catch(() => '')}`;
  return table.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    const listens = state === '0A' && sockets.has(inode);
    return listens ? [Number.parseInt(local.split(':')[1] ?? '', 16)] : [];
  });
}
