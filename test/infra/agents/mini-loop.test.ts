import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { exits } from '../../../infra/agents/mini/exits.ts';
import { work } from '../../../infra/agents/mini/loop.ts';
import { type Message, ModelError } from '../../../infra/agents/mini/model.ts';
import { tools } from '../../../infra/agents/mini/tools.ts';
import { until } from '../../helpers/until.ts';

interface Call {
  readonly name: string;
  readonly arguments: string;
}

const bash = (command: string): Call => ({ name: 'bash', arguments: JSON.stringify({ command }) });
const edit = (path: string, old: string, replacement: string): Call => ({
  name: 'edit',
  arguments: JSON.stringify({ path, old, new: replacement }),
});
const submit: Call = { name: 'submit', arguments: '' };

/** The model is scripted; the tools are mini's own and work in a temporary directory. */
describe("mini's loop", () => {
  let workdir: string;
  before(async () => {
    workdir = await mkdtemp(join(tmpdir(), 'temper-mini-loop-'));
  });
  after(() => rm(workdir, { recursive: true, force: true }));

  /** Plays a script of turns, each of which calls tools, says something without a call, or fails. */
  async function play(
    turns: readonly (readonly Call[] | Error)[],
    {
      maxTurns = 20,
      commandTimeoutMs = 60_000,
    }: { readonly maxTurns?: number; readonly commandTimeoutMs?: number } = {},
  ) {
    let said: readonly Message[] = [];
    let turn = 0;
    const code = await work({
      instruction: 'Fix it.',
      model: {
        async reply(messages) {
          said = messages;
          const script = turns[turn] ?? [];
          turn += 1;
          if (script instanceof Error) throw script;
          const calls = script.map((call, index) => ({
            id: `call-${turn}-${index}`,
            type: 'function' as const,
            function: call,
          }));
          return { role: 'assistant', content: 'Continuing.', ...(calls.length > 0 && { tool_calls: calls }) };
        },
      },
      tools,
      workspace: { workdir, environment: { PATH: process.env.PATH }, commandTimeoutMs },
      maxTurns,
      log: () => {},
    });
    return { code, turns: turn, answers: said.flatMap((one) => (one.role === 'tool' ? [one.content] : [])), said };
  }

  it('reports a failed tool to the model and continues', async () => {
    const { code, answers } = await play([
      [bash('echo out; echo err >&2; exit 3')],
      [edit('missing.js', 'a', 'b')],
      [edit('new.js', '', 'one one'), edit('new.js', 'one', 'two'), edit('new.js', '', 'again')],
      [
        { name: 'search', arguments: '{}' },
        { name: 'bash', arguments: '{"command"' },
        { name: 'bash', arguments: '{"command": 1}' },
      ],
      [submit],
    ]);
    assert.equal(code, exits.submitted);
    const expected = [
      /^out\nerr\n\[exit status 3\]$/,
      /^error: ENOENT/,
      /^made$/,
      /^error: the old text occurs 2 times in new\.js, expected once$/,
      /^error: EEXIST/,
      /^error: expected one of bash, edit, submit, got "search"$/,
      /^error: expected the arguments as a JSON object/,
      /^error: command: expected a string, got 1$/,
    ];
    assert.equal(answers.length, expected.length, answers.join('\n'));
    for (const [index, pattern] of expected.entries()) assert.match(answers[index] ?? '', pattern);
    assert.equal(await readFile(join(workdir, 'new.js'), 'utf8'), 'one one');
  });

  it('kills a command that takes too long with its children, and reports what it printed', async () => {
    const printed = /^(\d+)\n(\d+)\n\[timed out after [\d.]+ s\]$/;
    let commandTimeoutMs = 150;
    const [, shell, child] = await until(async () => {
      // On a busy machine a shell needs longer until it has printed.
      commandTimeoutMs *= 2;
      const { code, answers } = await play([[bash('echo $$; sleep 60 & echo $!; wait')], [submit]], {
        commandTimeoutMs,
      });
      assert.equal(code, exits.submitted);
      assert.match(answers[0] ?? '', /\[timed out after [\d.]+ s\]$/);
      return printed.exec(answers[0] ?? '');
    });
    for (const pid of [shell, child]) {
      // It is killed, and ends when the machine comes to it.
      await until(async () => {
        const state = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z');
        return state.slice(state.lastIndexOf(')') + 2)[0] === 'Z';
      });
    }
  });

  it('reminds a model once to call a tool, and ends if the next reply has no call either', async () => {
    const { code, turns, said } = await play([[], []]);
    assert.deepEqual([code, turns], [exits.exited, 2]);
    assert.deepEqual(
      said.map(({ role }) => role),
      ['system', 'user', 'assistant', 'user', 'assistant'],
    );
    assert.deepEqual((await play([[], [bash('true')], [], [submit]])).code, exits.submitted);
  });

  it("ends at its own turn limit, at the gateway's limits and when the context is full", async () => {
    assert.deepEqual(
      await play([[bash('true')], [bash('true')], [submit]], { maxTurns: 2 }).then(({ code }) => code),
      exits.turnLimit,
    );
    const refused = async (code: string) => (await play([new ModelError(code, 'no more')])).code;
    assert.equal(await refused('turn_limit'), exits.turnLimit);
    assert.equal(await refused('token_budget'), exits.tokenBudget);
    assert.equal(await refused('context_length_exceeded'), exits.contextOverflow);
    await assert.rejects(refused('403'), /no more/);
  });
});
