import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { it } from 'node:test';
import type { Command, Sandbox } from '../../../infra/sandbox/sandbox.ts';
import { until } from '../../helpers/until.ts';
import { type Bench, foreground, sh } from './contract.ts';

export function streamContract({ subject, stack, provider, signal, make }: Bench): void {
  const open = async (
    sandbox: Sandbox | undefined,
    script: string,
    changes: Partial<Command> = {},
  ): Promise<Duplex> => {
    const stream = await sandbox?.openStream?.({ account: 'agent', argv: sh(script), env: {}, ...changes }, signal);
    return stream ?? assert.fail('expected a stream');
  };

  const offered = provider.channels.includes('stream');

  it('opens streams exactly if it says so', async () => {
    const sandbox = await make('streams');
    assert.equal(sandbox.openStream !== undefined, offered);
  });
  if (!offered) return;

  it('connects a command by a stream, with its account, environment and directory, and without its stderr', async () => {
    const sandbox = await make('stream');
    const script = 'echo lost >&2; pwd; echo "$WHAT"; id -u; cat';
    const stream = await open(sandbox, script, { cwd: '/tmp', env: { WHAT: 'a b' } });
    stream.end('in\n');
    const uid = String((await sandbox.exec({ ...foreground, argv: ['id', '-u'] }, signal)).stdout);
    assert.equal(String(await buffer(stream)), `/tmp\na b\n${uid}in\n`);
  });

  it('passes bytes over a stream unchanged in both directions, and waits for a slow reader', async () => {
    const sandbox = await make('stream-bytes');
    const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => (index * 7) % 251));
    const stream = await open(sandbox, 'exec cat');
    stream.end(bytes);
    // Nothing reads: what the stream holds stays bounded.
    await until(() => stream.readableLength >= stream.readableHighWaterMark);
    assert.ok(stream.readableLength < bytes.length / 2, `holds ${stream.readableLength} bytes`);
    assert.ok(bytes.equals(await buffer(stream)));
  });

  it('ends the command of a stream when that is destroyed, and a stream when its command ends', async () => {
    const sandbox = await make('stream-ends');
    const destroyed = await open(sandbox, 'echo ready; cat; touch destroyed');
    await once(destroyed, 'data');
    destroyed.destroy();
    const look = { ...foreground, argv: sh('test -e destroyed') };
    await until(async () => (await sandbox.exec(look, signal)).exitCode === 0);
    const stream = await open(sandbox, 'echo last');
    assert.equal(String(await buffer(stream)), 'last\n');
    if (!stream.closed) await once(stream, 'close');
  });

  it('leaves a detached process alone when a stream is lost, and opens another from another provider', async () => {
    const sandbox = await make('stream-again');
    await sandbox.start({ key: 'job', account: 'agent', env: {}, argv: sh('sleep 600') }, signal);
    const first = await open(sandbox, 'cat');
    first.destroy();
    const other = subject.open(stack);
    const second = await open(await other.attach(sandbox.name), 'cat');
    second.end('again');
    assert.equal(String(await buffer(second)), 'again');
    assert.deepEqual(await sandbox.status('job'), { state: 'running' });
    await sandbox.kill('job');
    await other.close();
  });

  it('ends what a stream has left, together with the other processes of the account', async () => {
    const sandbox = await make('stream-left');
    const stream = await open(sandbox, 'echo ready; exec sleep 4321');
    await once(stream, 'data');
    const closed = once(stream, 'close');
    await sandbox.killProcesses('agent');
    await closed;
    const seen = await sandbox.exec({ ...foreground, argv: sh('cat /proc/[0-9]*/cmdline | grep -c "43[2]1"') }, signal);
    assert.equal(String(seen.stdout), '0\n');
  });
}
