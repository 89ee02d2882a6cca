import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { exits } from '../../../../infra/agents/mini/exits.ts';
import { readKeys } from '../../../../infra/agents/terminal/keys.ts';
import { main } from '../../../../infra/agents/terminal/main.ts';
import { instructionFile, variables } from '../../../../infra/agents/terminal/settings.ts';
import { openTerminal, type Terminal } from '../../../../infra/agents/terminal/terminal.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../../helpers/gateway/gateway.ts';
import { startRelay } from '../../../helpers/gateway/relay.ts';
import { until } from '../../../helpers/until.ts';

/** A time in which what is waited for happens on any machine. */
const long = 60_000;
const plain = { PS1: '$ ', PATH: process.env.PATH };
/** The keystrokes of a command that lasts. It says when it has the terminal. */
const sleeping = `sh -c 'echo be""gun; exec sleep 1000'\n`;

describe('a terminal', () => {
  let home: string;
  let terminal: Terminal;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-terminal-'));
    terminal = await openTerminal({ workdir: home, directory: home, environment: { ...plain, HOME: home } });
  });
  after(async () => {
    terminal?.close();
    await rm(home, { recursive: true, force: true });
  });

  const type = async (keystrokes: string, waitMs = long): Promise<string> => {
    await terminal.type(readKeys(keystrokes), waitMs);
    return terminal.show();
  };
  /** Types, and waits for a text that no prompt follows. */
  const typeUntil = async (keystrokes: string, pattern: RegExp): Promise<string> => {
    const shown = [await type(keystrokes, 50)];
    return until(async () => {
      shown.push(await type('', 50));
      // What is new may begin within a line or with the next one.
      return (
        ['', '\n'].map((between) => shown.filter(Boolean).join(between)).find((seen) => pattern.test(seen)) ?? null
      );
    });
  };

  it('waits for the end of a command, and shows its output alone', async () => {
    await type('true\n');
    const before = performance.now();
    assert.match(await type('sleep 0.6; echo do""ne; false\n'), /[$#] sleep 0\.6; echo do""ne; false\ndone\n.*[$#]$/s);
    assert.ok(performance.now() - before > 500);
    assert.match(await type('cd / && pwd\necho $?\ncd -\n'), /pwd\n\/\n.*\n0\n.*\n\//s);
  });

  it('waits for the last one of several commands, though it prints nothing for a while', async () => {
    assert.match(await type('cd .\nsleep 0.8; echo do""ne\n'), /\ndone\n.*[$#]$/);
    assert.match(
      await type("cat <<'END'\n1\nEND\nprintf 'no line'; sleep 0.8; echo ' break'\n"),
      /\nno line break\n.*[$#]$/,
    );
  });

  it('leaves no file of its own', async () => {
    assert.deepEqual(await readdir(home), []);
  });

  it('types into a program until the end of its input', async () => {
    // The shell prints it when it reads no more keys itself.
    await typeUntil('echo be""gun; cat >typed.txt\n', /\nbegun$/);
    await typeUntil('one "line"\nand $another\n', /\$another$/);
    await type('C-d');
    assert.equal(await readFile(join(home, 'typed.txt'), 'utf8'), 'one "line"\nand $another\n');
  });

  it('converses with an interpreter', async () => {
    await typeUntil('python3 -i -q\n', />>>/);
    await typeUntil('def f(n):\n    return n * 7\n\nf(6)\n', /\n42\n>>>/);
    assert.match(await type('exit()\n'), /[$#]$/);
  });

  it('shows a full-screen program, which asks the terminal for its size', async () => {
    const script =
      'import curses;s=curses.initscr();s.addstr(*[v-1 for v in s.getmaxyx()][:0],"at the top");s.addstr(39,150,"edge");s.refresh();s.getch();curses.endwin()';
    await writeFile(join(home, 'screen.py'), script);
    const seen = await typeUntil('python3 screen.py\n', /edge/);
    assert.match(seen, /\[the screen of a full-screen program.*\]\nat the top\n/);
    assert.match(await type('q'), /[$#]$/);
  });

  it('sends the cursor keys that a full-screen program knows', async () => {
    const script =
      "import curses;s=curses.initscr();s.keypad(True);s.addstr('ask');s.refresh();k=s.getch();curses.endwin();print(k==curses.KEY_UP)";
    await writeFile(join(home, 'keys.py'), script);
    await typeUntil('python3 keys.py\n', /ask/);
    assert.match(await type('Up'), /^(?:.*\n)?True\n.*[$#]$/s);
  });

  it('answers no more questions than programs ask that read the answers', async () => {
    const script = `import os, select, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
for _ in range(30):
    asked = b'\\033[6n' * 1000
    while asked: asked = asked[os.write(1, asked):]
got = 0
while select.select([0], [], [], 1 if got >= 6000 else 60)[0]: got += len(os.read(0, 65536))
termios.tcsetattr(0, termios.TCSANOW, before)
print('answered', got, 'bytes')`;
    await writeFile(join(home, 'ask.py'), script);
    const seen = await typeUntil('python3 ask.py\n', /answered \d+ bytes/);
    const answered = Number(/answered (\d+) bytes/.exec(seen)?.[1]);
    // All answers are 180,000 bytes or more.
    assert.ok(answered >= 6_000 && answered < 90_000, `${answered} bytes`);
  });

  it('interrupts a command that prints without end', async () => {
    await typeUntil('yes\n', /\ny\ny\n/);
    assert.match(await type('C-c'), /\^C\n.*[$#]$/);
    const before = performance.now();
    await typeUntil(sleeping, /\nbegun$/);
    assert.match(await type('C-c'), /\^C\n.*[$#]$/);
    assert.ok(performance.now() - before < long);
  });

  it('takes a long text, also while no program reads it', async () => {
    const lines = Array.from({ length: 2000 }, (_, line) => `the line ${line} of a long file\n`).join('');
    assert.match(await type(`cat >long.txt <<'END'\n${lines}END\nwc -l long.txt\n`), /\n2000 long\.txt\n.*[$#]$/);
    assert.equal(await readFile(join(home, 'long.txt'), 'utf8'), lines);
    await typeUntil(sleeping, /\nbegun$/);
    await type('x'.repeat(100_000), 100);
    await type('C-c');
    assert.match(await type('\necho $((6 * 7))\n'), /\n42\n/);
  });

  it('opens a new shell after the end of one', async () => {
    assert.match(await type('exit\n'), /exit\n\n\[the shell has ended; the next keystrokes go to a new one\]$/);
    assert.match(await type('echo a""gain\n'), /\nagain\n.*[$#]$/);
    assert.match(await type('seq 1 200000; exit\n'), /\n200000\n(?:exit\n)?\n\[the shell has ended/);
    // The shell of a full-screen program that ends with it.
    const last = await type("printf '\\033[?1049h\\033[5;9r'; exit\n");
    assert.match(last, /\[the shell has ended; the next keystrokes go to a new one\]$/);
    assert.ok(!last.includes('full-screen'), last);
    assert.match(await type('seq 1 60\n'), /\n1\n2\n(?:\d+\n)+60\n.*[$#]$/);
  });
});

describe('the agent terminal', () => {
  /** Runs the agent against a policy that says these replies. */
  async function play(replies: readonly string[], settings: Readonly<Record<string, string>> = {}) {
    const engine = createScriptedEngine({
      script: (_, index) => ({ kind: 'say', ids: gateway.model.tokens.encode(`${replies[index]}<|im_end|>`) }),
    });
    await using gateway = await startTestGateway(engine);
    const home = await mkdtemp(join(tmpdir(), 'temper-terminal-'));
    await using relay = await startRelay(gateway);
    try {
      const secret = await gateway.open('a.1');
      await writeFile(join(home, instructionFile), 'Fix it.');
      const code = await main({
        ...plain,
        HOME: home,
        [variables.baseUrl]: relay.url,
        [variables.secret]: secret,
        [variables.workdir]: home,
        [variables.maxTurns]: '20',
        [variables.commands]: 'text',
        ...settings,
      });
      const prompts = engine.requests.map(({ tokenIds }) => gateway.model.tokens.decode(tokenIds));
      const file = await readFile(join(home, 'made.txt'), 'utf8').catch(() => null);
      return { code, prompts, last: prompts.at(-1) ?? '', file, secret };
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  }
  const typing = (...keystrokes: readonly string[]): string =>
    JSON.stringify({ commands: keystrokes.map((one) => ({ keystrokes: one, duration: 20 })) });
  const done = '{"commands": [], "task_complete": true}';
  const call = (name: string, given: object = {}): string =>
    `<tool_call>\n${JSON.stringify({ name, arguments: given })}\n</tool_call>`;
  const leave = typing('exit\n');

  it('types what a text says, and ends when the model says twice in a row that the task is complete', async () => {
    const { code, prompts, last, file, secret } = await play([
      `I look.\n\`\`\`json\n${typing('env\n')}\n\`\`\``,
      done,
      typing('echo fixed >made.txt\n'),
      `${done} Bye.`,
      leave.replace('}]', '}], "task_complete": true'),
    ]);
    assert.deepEqual([code, prompts.length, file], [exits.submitted, 5, 'fixed\n']);
    assert.match(prompts[0] ?? '', /Fix it\.\n\nThe terminal:\n.*[$#]/);
    assert.ok(!prompts[0]?.includes('<tools>'));
    assert.equal(last.split('Is all of the task done?').length, 3);
    assert.ok(last.includes('HOME='), 'expected the terminal to show its environment');
    for (const hidden of [secret, ...Object.values(variables)]) assert.ok(!last.includes(hidden), hidden);
    for (const [index, prompt] of prompts.slice(1).entries()) assert.ok(prompt.startsWith(prompts[index] ?? '?'));
  });

  it('runs calls of its tools, together with commands as text', async () => {
    const { code, prompts, last, file } = await play(
      [
        call('terminal', { keystrokes: 'echo fixed >made.txt\n', duration: 20 }),
        call('terminal', { keys: 'ls' }),
        call('bash', { command: 'ls' }),
        typing('cat made.txt\n'),
        call('task_complete'),
        leave.replace('}]', '}], "task_complete": true'),
      ],
      { [variables.commands]: 'tools' },
    );
    assert.deepEqual([code, prompts.length, file], [exits.submitted, 6, 'fixed\n']);
    assert.ok(prompts[0]?.includes('<tools>') && prompts[0].includes('"keystrokes"'));
    assert.match(last, /error: keystrokes: expected a text, got nothing/);
    assert.match(last, /error: expected one of terminal, task_complete, got "bash"/);
    assert.match(last, /[$#] cat made\.txt\nfixed\n/);
  });

  it('tells the model what is wrong with a reply, and ends after five that say nothing', async () => {
    const { code, prompts, last } = await play([
      leave,
      'Hello.',
      '{"commands": [{"keystrokes": "ls',
      ' ',
      '{}',
      'Bye.',
    ]);
    assert.deepEqual([code, prompts.length], [exits.exited, 6]);
    assert.match(last, /error: the reply has no JSON object with "commands"\nNothing was typed\./);
    assert.match(last, /error: the JSON cannot be read: expected the end of a text, but it ends there/);
  });

  it('ends at its turn limit', async () => {
    assert.equal((await play([leave], { [variables.maxTurns]: '1' })).code, exits.turnLimit);
  });
});
