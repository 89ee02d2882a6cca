import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { taskToFix } from '../../../helpers/rollouts/agent-cases.ts';
import { type AgentRollouts, startAgentRollouts } from '../../../helpers/rollouts/agent-rollouts.ts';
import { writeHarborTask } from '../../../helpers/tasks/harbor-task.ts';

const typing = (...commands: readonly (readonly [string, number])[]): string =>
  JSON.stringify({
    analysis: 'I see.',
    plan: 'I continue.',
    commands: commands.map(([keystrokes, duration]) => ({ keystrokes, duration })),
    task_complete: false,
  });
const done = '{"analysis": "It is done.", "plan": "", "commands": [], "task_complete": true}';

/** A reply of the policy. Until the terminal has shown what `once` matches, the policy waits instead. */
interface Reply {
  readonly text: string;
  readonly once?: RegExp;
}

const served = `
cat >/tmp/ask.py <<'END'
import urllib.request
print(urllib.request.urlopen('http://127.0.0.1:8123/answer.txt').read().decode().strip())
END
mkdir -p /logs/verifier
[ "$(python3 /tmp/ask.py)" = right ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt
`;

describe('the agent terminal in a sealed container', () => {
  let rollouts: AgentRollouts;
  let replies: readonly Reply[] = [];
  let given = 0;
  /** The prompts that the policy saw. */
  let prompts: string[] = [];
  /** The reply before which the workers are replaced; null for none. */
  let replacedBefore: number | null = null;

  before(async () => {
    rollouts = await startAgentRollouts(
      async (promptIds, { model: { tokens } }) => {
        const prompt = tokens.decode(promptIds);
        prompts.push(prompt);
        const { text, once } = replies[given] ?? { text: 'Nothing more.' };
        if (once?.test(prompt) === false) return tokens.encode(`${typing(['', 1])}<|im_end|>`);
        given += 1;
        if (given - 1 === replacedBefore) await rollouts.replaceWorkers();
        return tokens.encode(`${text}<|im_end|>`);
      },
      { taskRoot: 'tasks' },
    );
  });
  after(() => rollouts?.close());

  it('solves a task by keystrokes as text, while the workers of its host are replaced', async () => {
    const python = "path = 'stock.js'\ntext = open(path).read().replace('**=', '/=')\nopen(path, 'w').write(text)\n";
    prompts = [];
    given = 0;
    replacedBefore = 3;
    replies = [
      { text: typing(['cat stock.js\n', 30]) },
      { text: `I print much.\n\`\`\`json\n${typing(['seq 1 200000\n', 60])}\n\`\`\`` },
      { text: typing(['yes\n', 1]) },
      { text: typing(['C-c', 30]), once: /\ny\ny\n/ },
      { text: `<think>\nI take an interpreter.\n</think>\n${typing(['python3 -i -q\n', 1])}` },
      { text: typing([python, 1]), once: /python3 -i -q\n>>>/ },
      { text: typing(['C-d', 30]), once: /\d\n>>>/ },
      { text: 'What is left to do?' },
      { text: typing(['echo be""gun; cat >notes.txt\n', 0.3]) },
      { text: typing(['It divides now.\n', 0.3]), once: /begun/ },
      { text: typing(['C-d', 30], ['cat notes.txt; exit\n', 30]), once: /It divides now\.[^\\]/ },
      { text: done },
      { text: done },
    ];
    const { result, log, evidence } = await rollouts.roll({ task: taskToFix, agent: 'terminal' });
    assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
    assert.equal(log.split('relay: starts').length, 2, 'expected one start of the agent');
    assert.ok(result.trace !== null);
    const trace = await rollouts.gateway.traceOf(result.trace);
    assert.deepEqual(
      [trace.turns.length, trace.maskedTurns, trace.faultyCalls, trace.segments.map(({ kind }) => kind)],
      [prompts.length, [], {}, ['main']],
      evidence,
    );
    const last = prompts.at(-1) ?? '';
    for (const [at, prompt] of prompts.slice(0, -1).entries()) assert.ok(last.startsWith(prompt), `prompt ${at}`);
    const seen = [
      /quotient \*\*= right;/,
      /seq 1 200000\n1\n2\n/,
      /bytes left out\]/,
      /\n200000\n/,
      // The interrupt may cut the output after the letter.
      /\ny\n?\^C\n/,
      />>> path = 'stock\.js'\n>>> text = /,
      /error: the reply has no JSON object with "commands"/,
      /\nIt divides now\.\n/,
      /\[the shell has ended; the next keystrokes go to a new one\]/,
      /Is all of the task done\?/,
    ];
    for (const pattern of seen) assert.match(last, pattern);
  });

  it('leaves a server at its terminal to the tests of a task that keeps processes', async () => {
    const task = await writeHarborTask(`${rollouts.home}/tasks`, 'served', {
      toml: '[environment]\ndocker_image = "temper-tasks:bookworm"\n[grading]\nsandbox = "same"\nkeep_processes = true\n',
      test: served,
    });
    prompts = [];
    given = 0;
    replacedBefore = null;
    const serve = typing(['echo right >answer.txt\n', 30], ['python3 -m http.server 8123\n', 1]);
    replies = [{ text: serve }, { text: done, once: /Serving HTTP on/ }, { text: done }];
    const { result, evidence } = await rollouts.roll({ task, agent: 'terminal' });
    assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
    assert.match(prompts.at(-1) ?? '', /Serving HTTP on/);
  });
});
