import assert from 'node:assert/strict';
import { it } from 'node:test';
import { wasEndedInside } from '../../../infra/sandbox/failure.ts';
import type { Sandbox } from '../../../infra/sandbox/sandbox.ts';
import { drain } from '../../../infra/sandbox/tar-entries.ts';
import { type Bench, foreground } from './contract.ts';

/** The work of an agent, with what could lead a reader or a writer of its files elsewhere. */
const work = `set -e
rm kept/gone; mv kept/dir moved; mkdir -p new ~/.local; echo tool >~/.local/tool; chmod 755 ~/.local/tool
echo first >new/one; ln new/one new/other; ln -s /etc/passwd new/link; ln -s / /tmp/root; mkfifo /tmp/fifo || true
printf rewritten >kept/same; touch -d @1000 kept/same; chmod 640 kept/same
mkdir /tmp/shut; echo in >/tmp/shut/in; chmod 000 /tmp/shut/in /tmp/shut; : >"new/$(printf 'a\\nb')"; : >"new/$(printf '\\377')"
`;

/** A path that no program can name, in one piece. */
const deepTree =
  'mkdir -p deep && cd deep && for n in $(seq 40); do d=$(printf %0200d $n); mkdir $d; cd -P $d || exit 1; done';

/** The expected state of the other sandbox afterwards. */
const check = `set -e
[ "$(ls kept | xargs)" = same ]; [ "$(cat kept/same)" = rewritten ]; [ "$(stat -c '%a %Y' kept/same)" = '640 1000' ]
[ "$(cat moved/file)" = file ]; [ "$(cat ~/.local/tool)" = tool ]; [ -x ~/.local/tool ]; [ new/one -ef new/other ]
[ "$(readlink new/link /tmp/root | xargs)" = '/etc/passwd /' ]; [ -e "new/$(printf 'a\\nb')" ]
[ "$(stat -c %a /tmp/shut)" = 0 ]; [ "$(stat -c %U kept/same new ~/.local /tmp/shut | sort -u)" = "$(id -un)" ]
chmod 700 /tmp/shut; chmod 600 /tmp/shut/in; cat /tmp/shut/in
`;

export function changesContract({ provider, signal, make }: Bench): void {
  const run = async (sandbox: Sandbox, script: string): Promise<string> => {
    const { exitCode, stdout, stderr } = await sandbox.exec({ ...foreground, argv: ['bash', '-c', script] }, signal);
    assert.equal(exitCode, 0, stderr.toString());
    return stdout.toString();
  };

  it('carries all that an agent changed into another sandbox, if it carries changes at all', async () => {
    const places = ['changed', 'carried'].map((name) => make(name));
    const [agents, other] = await Promise.all(places);
    assert.ok(agents && other);
    assert.equal(agents.changes !== undefined, provider.carriesChanges);
    if (agents.changes === undefined || other.changes === undefined) return;
    for (const sandbox of [agents, other]) {
      await run(
        sandbox,
        'mkdir -p kept/dir; echo gone >kept/gone; echo same-long >kept/same; echo file >kept/dir/file',
      );
      await sandbox.changes?.note(signal);
    }
    await run(agents, work);
    const { entries, ...read } = await agents.changes.read(['/home/agent/.local/left'], signal);
    assert.equal(await other.changes.write({ ...read, entries: entries() }, signal), null);
    assert.equal(await run(other, check), 'in\n');
    assert.deepEqual(await agents.changes.changedPrograms(), []);
  });

  it('reads changes beside a path that is longer than the kernel takes, or says that the agent is to blame', async () => {
    const sandbox = await make('deep');
    if (sandbox.changes === undefined) return;
    await run(sandbox, `${deepTree}; echo here >/tmp/here`);
    const read = async (): Promise<readonly string[]> => {
      const paths: string[] = [];
      const { entries } = (await sandbox.changes?.read([], signal)) ?? assert.fail();
      for await (const { header, content } of entries()) {
        paths.push(header.path);
        await drain(content);
      }
      return paths;
    };
    const paths = await read().catch((error: unknown) => {
      if (wasEndedInside(error)) return ['/tmp/here'];
      throw error;
    });
    assert.ok(paths.includes('/tmp/here'), paths.join('\n'));
  });
}
