import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { givenToGrader } from '../../../../infra/grading/snapshot/give-to-grader.ts';
import type { CarriedHeader } from '../../../../infra/sandbox/changes.ts';

const header = (path: string, mode: number, more: Partial<CarriedHeader> = {}): CarriedHeader => ({
  path,
  type: 'file',
  mode,
  uid: 'agent',
  gid: 'agent',
  mtime: new Date(0),
  size: 0,
  ...more,
});
const directory = { type: 'directory' } as const;

/** Returns what tests get of entries: `grader` with the files that the grader gets, and the mode of each. */
async function givenOf(headers: readonly CarriedHeader[], protectedPaths: readonly string[] = []) {
  const entries = Readable.from(headers.map((one) => ({ header: one, content: Readable.from([]) })));
  const changes = { listings: [{ directory: '/home/agent', names: [] }], added: [], entries };
  const found: [string, string, 'grader' | CarriedHeader['uid']][] = [];
  for await (const { header: got } of givenToGrader(changes, { workdir: '/w', protectedPaths }).entries)
    found.push([got.path, got.mode.toString(8), got.toGrader ? 'grader' : got.uid]);
  return found;
}

describe('the files of an agent that its tests get', () => {
  it('are the grader’s if other accounts cannot read them, with their modes', async () => {
    const found = await givenOf([
      header('/w', 0o700, directory),
      header('/w/key', 0o600),
      header('/w/open', 0o644),
      header('/w/dir', 0o2710, directory),
      header('/w/runs-as-its-owner', 0o4750),
      header('/home/agent', 0o700, directory),
      header('/home/agent/.ssh', 0o700, directory),
      header('/home/agent/.ssh/key', 0o400),
      header('/etc/others', 0o600, { uid: 0 }),
    ]);
    assert.deepEqual(found, [
      ['/w', '755', 'agent'],
      ['/w/key', '600', 'grader'],
      ['/w/open', '644', 'agent'],
      ['/w/dir', '710', 'grader'],
      ['/w/runs-as-its-owner', '750', 'grader'],
      ['/home/agent', '700', 'agent'],
      ['/home/agent/.ssh', '700', 'grader'],
      ['/home/agent/.ssh/key', '400', 'grader'],
      ['/etc/others', '600', 0],
    ]);
  });

  it('share owner and mode with their other names', async () => {
    const link = { type: 'link', target: '/tmp/a' } as const;
    const found = await givenOf([header('/tmp/a', 0o600), header('/tmp/b', 0o644, link)]);
    assert.deepEqual(found, [
      ['/tmp/a', '600', 'grader'],
      ['/tmp/b', '600', 'grader'],
    ]);
  });

  it('stay the agent’s where protected files are put back, but open', async () => {
    const protectedPaths = ['/w/tests/one/golden', '/w/replaced'];
    const paths = ['/w/tests', '/w/tests/one', '/w/replaced', '/w/replaced/by', '/w/replaced/by/more', '/w/other'];
    const found = await givenOf(
      paths.map((path) => header(path, 0o700, directory)),
      protectedPaths,
    );
    assert.deepEqual(
      found.map(([, mode, owner]) => `${mode} ${owner}`),
      [...Array.from({ length: 5 }, () => '755 agent'), '700 grader'],
    );
  });

  it('are open in the workdir if their owner cannot read them either, or if they are very many', async () => {
    const unreadable = [header('/w/sealed', 0o200), header('/w/shut', 0, directory), header('/tmp/sealed', 0)];
    assert.deepEqual(await givenOf(unreadable), [
      ['/w/sealed', '644', 'agent'],
      ['/w/shut', '555', 'agent'],
      ['/tmp/sealed', '0', 'agent'],
    ]);
    const many = await givenOf(Array.from({ length: 10_001 }, (_, number) => header(`/w/${number}`, 0o600)));
    assert.deepEqual(many.slice(-2), [
      ['/w/9999', '600', 'grader'],
      ['/w/10000', '644', 'agent'],
    ]);
  });
});
