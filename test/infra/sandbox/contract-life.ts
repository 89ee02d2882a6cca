import assert from 'node:assert/strict';
import { it } from 'node:test';
import { until } from '../../helpers/until.ts';
import { type Bench, foreground, sh } from './contract.ts';

export function lifeContract({ subject, stack, provider, signal, spec, make }: Bench): void {
  it('creates a sandbox once, even for concurrent requests', async () => {
    const sandboxes = await Promise.all([1, 2, 3].map(() => make('once')));
    assert.equal((await sandboxes[0]?.exec({ ...foreground, argv: sh('echo one >kept') }, signal))?.exitCode, 0);
    const again = await make('once');
    assert.equal(String((await again.exec({ ...foreground, argv: sh('cat kept') }, signal)).stdout), 'one\n');
    assert.equal((await provider.list(stack)).filter(({ labels }) => labels.rollout === 'once').length, 1);
  });

  it('rejects a name that belongs to another epoch or rollout', async () => {
    await make('fenced');
    await assert.rejects(provider.ensure(spec('fenced', {}, { epoch: 2 }), signal), { type: 'SandboxConflict' });
    await assert.rejects(provider.ensure(spec('fenced', {}, { rollout: 'other' }), signal), {
      type: 'SandboxConflict',
    });
  });

  it('lists the sandboxes of one stack with their labels, and of no other stack', async () => {
    const beganMs = Date.now();
    const sandbox = await make('listed');
    const info = (await provider.list(stack)).find(({ name }) => name === sandbox.name);
    assert.deepEqual(info?.labels, sandbox.labels);
    assert.equal(info?.running, true);
    const { createdAtMs = 0 } = info ?? {};
    assert.ok(createdAtMs > beganMs - 60_000 && createdAtMs < Date.now() + 60_000, `created at ${createdAtMs}`);
    assert.deepEqual(await provider.list(`${stack}-other`), []);
  });

  it('neither attaches to nor removes a sandbox of another stack', async () => {
    const sandbox = await make('foreign');
    const other = subject.open(`${stack}-other`);
    assert.equal(await other.attach(sandbox.name), undefined);
    assert.equal(await other.remove(sandbox.name), false);
    assert.equal((await sandbox.exec({ ...foreground, argv: ['true'] }, signal)).exitCode, 0);
    await other.close();
  });

  it('removes a sandbox with everything that runs in it, and nothing the second time', async () => {
    const sandbox = await make('removed');
    await sandbox.start({ key: 'long', argv: ['sleep', '600'], env: {}, account: 'agent' }, signal);
    assert.equal(await provider.remove(sandbox.name), true);
    assert.equal(await provider.remove(sandbox.name), false);
    assert.equal(await provider.attach(sandbox.name), undefined);
    assert.equal(
      (await provider.list(stack)).some(({ name }) => name === sandbox.name),
      false,
    );
  });

  it('reports a sandbox as lost if it is removed while in use, and does not create a blank one', async () => {
    const sandbox = await make('lost');
    await sandbox.start({ key: 'long', argv: ['sleep', '600'], env: {}, account: 'agent' }, signal);
    const waiting = assert.rejects(sandbox.wait('long', { timeoutMs: 600_000 }, signal), { type: 'SandboxLost' });
    const sleeping = sandbox.exec(
      { ...foreground, timeoutMs: 600_000, argv: sh('touch /tmp/on && sleep 600') },
      signal,
    );
    const interrupted = assert.rejects(sleeping, { type: 'SandboxLost' });
    await until(
      async () => (await sandbox.exec({ ...foreground, argv: sh('test -e /tmp/on') }, signal)).exitCode === 0,
    );
    await provider.remove(sandbox.name);
    await Promise.all([waiting, interrupted]);
    await assert.rejects(sandbox.exec({ ...foreground, argv: ['true'] }, signal), {
      type: 'SandboxLost',
      loss: 'removed',
    });
    await assert.rejects(sandbox.status('long'), { type: 'SandboxLost' });
    await assert.rejects(sandbox.killProcesses('agent'), { type: 'SandboxLost' });
  });

  it('describes what it protects and what it does not', async () => {
    const description = await provider.describe();
    assert.equal(description.kind, provider.kind);
    assert.equal(description.ready, true);
    assert.ok(description.protects.length > 0 && description.doesNotProtect.length > 0);
  });

  it('supports a task whose paths and image it has', async () => {
    const paths = ['/workspace', '/tests', '/logs/verifier'];
    const needs = { task: 'some-task', image: subject.image, paths, filesInImage: false };
    assert.equal(await provider.supports(needs), undefined);
  });
}
