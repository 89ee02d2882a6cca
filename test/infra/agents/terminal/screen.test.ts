import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createEmulator } from '../../../../infra/agents/terminal/emulator.ts';
import { applicationKeys, readKeys } from '../../../../infra/agents/terminal/keys.ts';
import { createView, shorten } from '../../../../infra/agents/terminal/view.ts';

const csi = '\x1b[';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** A terminal of 5 rows and 10 columns, with a view. */
function open() {
  const view = createView();
  const answers: string[] = [];
  const emulator = createEmulator(
    { rows: 5, columns: 10 },
    { onScroll: (line) => view.keep(line), onAnswer: (text) => answers.push(text) },
  );
  return {
    emulator,
    answers,
    write: (text: string) => emulator.write(Buffer.from(text)),
    rows: () => emulator.lines.map(({ text }) => text),
    show: () => view.show(emulator),
  };
}

/** Outputs of programs, and the rows that the screen has then, without empty ones at its end. */
const screens: Readonly<Record<string, readonly [string, readonly string[]]>> = {
  'lines and tabs': ['a\r\nb\tc\r\n', ['a', 'b       c']],
  'a line that is too long': ['0123456789ab', ['0123456789', 'ab']],
  'a line that just fits': ['0123456789\r\nab', ['0123456789', 'ab']],
  'a progress bar': ['10%\r50%\r99%', ['99%']],
  backspace: ['abc\b\bX', ['aXc']],
  'cursor movements': [`${csi}3;4Hx${csi}Ay${csi}2Dz${csi}Gq${csi}5dr`, ['', 'q  zy', '   x', '', ' r']],
  'cursor movements beyond the edges': [
    `${csi}99;99Hx${csi}99Aa${csi}99D${csi}0Bb`,
    ['         a', 'b', '', '', '         x'],
  ],
  'erasing a line': [`abcdef${csi}3D${csi}K\r\nabcdef${csi}3D${csi}1K\r\nabc${csi}2K`, ['abc', '    ef']],
  'erasing the screen': [`a\r\nb\r\nc${csi}2;1H${csi}J`, ['a']],
  'erasing all': [`a\r\nb${csi}2J${csi}Hc`, ['c']],
  'inserted and removed characters': [`abcdef${csi}3G${csi}2P${csi}2G${csi}2@`, ['a  bef']],
  'blanked characters': [`abcdef${csi}2G${csi}2X`, ['a  def']],
  'inserted and removed lines': [`a\r\nb\r\nc${csi}2;1H${csi}L${csi}1;1H${csi}M`, ['', 'b', 'c']],
  'a region that scrolls': [`h\r\n1\r\n2\r\n3\r\nf${csi}2;4r${csi}4;1H\r\n4`, ['h', '2', '3', '4', 'f']],
  'a region that scrolls back': [`h\r\n1\r\n2\r\n3\r\nf${csi}2;4r${csi}2;1H\x1bM0`, ['h', '0', '1', '2', 'f']],
  'more lines than rows': ['1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7', ['3', '4', '5', '6', '7']],
  'colours, titles and modes': [`${csi}1;31mred${csi}0m\x1b]0;title\x07${csi}?25l${csi}?2004h!\x1b(B`, ['red!']],
  boxes: ['\x1b(0lqk\x1b(B q', ['┌─┐ q']],
  'wide characters and marks': ['漢字e\u0301x\b\b\b|', ['漢 |e\u0301x']],
  'saved positions': [`ab\x1b7\r\ncd\x1b8X`, ['abX', 'cd']],
  'a line break within a sequence': [`${csi}3\nCz`, ['', '   z']],
  'wide emoji': ['✅🚀🪐\b\b|', ['✅🚀|']],
};

describe('the screen of a terminal', () => {
  for (const [title, [printed, expected]] of Object.entries(screens)) {
    it(`shows ${title}`, async () => {
      const whole = open();
      await whole.write(printed);
      assert.deepEqual(whole.rows().join('\n').trimEnd().split('\n'), expected);
      // The same in pieces that end within characters and sequences.
      const pieces = open();
      for (const byte of Buffer.from(printed)) await pieces.emulator.write(Buffer.from([byte]));
      assert.deepEqual(pieces.rows(), whole.rows());
    });
  }

  it('is that of a full-screen program until it ends', async () => {
    const { write, rows, show, emulator } = open();
    await write(`$ vi\r\n${csi}?1049h${csi}Htext${csi}2;3H`);
    assert.ok(emulator.alternate);
    assert.equal(show(), '[the screen of a full-screen program, with the cursor in row 2, column 3]\ntext');
    await write(`${csi}?1049l$ `);
    assert.deepEqual(rows().slice(0, 2), ['$ vi', '$']);
    assert.equal(show(), '$ vi\n$');
  });

  it('answers what programs ask', async () => {
    const { write, answers } = open();
    await write(`ab\r\nc${csi}6n${csi}5n${csi}c`);
    assert.deepEqual(answers, [`${csi}2;2R`, `${csi}0n`, `${csi}?1;2c`]);
  });

  it('counts the prompts of a shell', async () => {
    const { write, emulator } = open();
    await write('\x1b]133;A\x1b\\$ ls\r\na\r\n\x1b]133;A\x07$ \x1b]133;B\x07');
    assert.deepEqual([emulator.prompts, emulator.atPrompt], [2, true]);
    await write('ls');
    assert.ok(emulator.atPrompt);
    await write('\r\n');
    assert.ok(!emulator.atPrompt);
    await write(`${'a\r\n'.repeat(9)}b\x1b]133;A\x07$ `);
    assert.ok(emulator.atPrompt);
    await write(`${csi}?1049h`);
    assert.ok(!emulator.atPrompt);
  });

  it('keeps the codes of the cursor keys that a program wants', async () => {
    const { write, emulator } = open();
    assert.ok(!emulator.applicationKeys);
    await write(`${csi}?1h`);
    assert.ok(emulator.applicationKeys);
    await write('\x1bc');
    assert.ok(!emulator.applicationKeys);
  });

  it('does not repeat what a program asks it to do two billion times', async () => {
    const { write, rows } = open();
    await write(`a${[...'ILMPSTXZ@ABCDEFGHb`d'].map((final) => `${csi}2147483647${final}`).join('')}`);
    await write(`${csi}H${csi}2Jdone`);
    assert.deepEqual(rows().slice(0, 2), ['done', '']);
  });

  it('ends a message without an end after some of it', async () => {
    const { write, rows } = open();
    for (const start of [']0;', ']8;;', ']133;', 'P$q', '_']) {
      await write(`${csi}H${csi}2J\x1b${start}${'é'.repeat(40_000)}\r\nnext`);
      assert.equal(rows()[4], 'next', start);
    }
  });

  const growing: Readonly<Record<string, (index: number) => string>> = {
    'links in one line': (index) => `\x1b]8;;http://localhost/${index}\x07x\r`,
    'links in many lines': (index) => `\x1b]8;id=${index};http://localhost/${index}\x07x\r\n`,
    marks: () => '\u0301'.repeat(20),
    'marked characters': () => `a${'\u0301'.repeat(20)}`,
    'prompts in one line': () => '\x1b]133;A\x07$ \r',
    'a title that has no end': (index) => `${index === 0 ? '\x1b]0;' : ''}${'t'.repeat(40)}`,
    'saved titles': () => `\x1b]0;title\x07${csi}22;0t`,
    'alternate screens': () => `${csi}?1049ha\r\n${csi}?1049l`,
    resets: () => 'a\r\n\x1bc',
    lines: () => 'a\r\n',
  };
  for (const [title, print] of Object.entries(growing)) {
    it(`takes no more memory with time, if it prints ${title}`, async () => {
      const { write } = open();
      let printed = 0;
      /** The memory in use after this many more pieces of output. */
      const after = async (many: number): Promise<number> => {
        await write(Array.from({ length: many }, () => print(printed++)).join(''));
        // V8 gives buffers back in another thread, for which it waits at the next collection.
        collectGarbage();
        await sleep(20);
        collectGarbage();
        const { heapUsed, arrayBuffers } = process.memoryUsage();
        return heapUsed + arrayBuffers;
      };
      const before = await after(20_000);
      const grown = (await after(60_000)) - before;
      assert.ok(grown < 8_000_000, `${grown} bytes`);
    });
  }

  it('stays whole and small whatever is printed', async () => {
    const { emulator, rows, show } = open();
    let seed = 7;
    const random = (): number => {
      seed = (seed * 1103515245 + 12345) % 2 ** 31;
      return seed;
    };
    const bytes = Buffer.from(
      Array.from({ length: 300_000 }, () => (random() % 7 === 0 ? 0x1b : (random() >> 8) % 256)),
    );
    await emulator.write(bytes);
    await emulator.write(Buffer.from(`${csi}!p\x1b]${'x'.repeat(100_000)}\x07a${'\u0301'.repeat(100_000)}`));
    assert.equal(rows().length, 5);
    assert.ok(rows().join('').length < 2000);
    assert.ok(Buffer.byteLength(show()) < 10_100);
  });
});

describe('what a model sees of a terminal', () => {
  it('is the line of the last prompt and what came after it', async () => {
    const { write, show } = open();
    await write('$ ');
    assert.equal(show(), '$');
    await write('ls\r\na\r\nb\r\n$ ');
    assert.equal(show(), '$ ls\na\nb\n$');
    assert.equal(show(), '$');
    await write('x\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n$ ');
    assert.equal(show(), '$ x\n1\n2\n3\n4\n5\n6\n$');
  });

  it('joins a line that was too long, and shows lines that were written again', async () => {
    const { write, show } = open();
    await write('$ cat\r\n0123456789abcdefghij01234\r\n$ ');
    assert.equal(show(), '$ cat\n0123456789abcdefghij01234\n$');
    await write(`${csi}Hagain${csi}5;3H`);
    assert.match(show(), /^again/);
    await write(`${csi}H${csi}2J$ `);
    assert.equal(show(), '$');
  });

  it('has the lines that had scrolled out when the screen was cleared, or a full-screen program was started', async () => {
    const { write, show } = open();
    await write(`$ seq 7; clear\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n${csi}H${csi}2J${csi}3J$ `);
    assert.equal(show(), '$ seq 7; clear\n1\n2\n3\n$');
    await write(`x\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n${csi}?1049h`);
    for (let times = 0; times < 5; times += 1) await write(`${csi}?1049l\r\n${csi}?1049h`);
    await write(`${csi}?1049l7\x1bc$ `);
    assert.equal(show(), '$ x\n1\n2\n3\n4\n5\n6\n\n$');
  });

  it('is the first and the last part of much output', async () => {
    const { write, show } = open();
    await write('$ ');
    show();
    await write('seq\r\n');
    await write(Array.from({ length: 50_000 }, (_, line) => `${line}\r\n`).join(''));
    const shown = show();
    assert.match(shown, /^\$ seq\n0\n1\n2\n/);
    assert.match(shown, /\n198\n\[\d+ lines were not kept\]\n\d+\n/);
    assert.match(shown, /\n\[\d+ bytes left out\]\n/);
    assert.match(shown, /\n49998\n49999$/);
    assert.ok(Buffer.byteLength(shown) < 10_100, `${shown.length}`);
    await write('$ ls\r\n$ ');
    assert.equal(show(), '$ ls\n$');
  });

  it('is cut between characters', async () => {
    assert.equal(shorten('ééééé', 10), 'ééééé');
    assert.equal(shorten('ééééé', 6), 'é\n[4 bytes left out]\né');
  });
});

it('keystrokes are the names of keys, or a text', async () => {
  const cases: Readonly<Record<string, string>> = {
    'ls -la\n': 'ls -la\r',
    'a\r\nb': 'a\rb',
    '': '',
    'C-c': '\x03',
    'C-c\n': '\x03',
    'c-C': '\x03',
    'End\n': 'End\r',
    ' ': ' ',
    'C-D': '\x04',
    '^Z': '\x1a',
    'C-[': '\x1b',
    'C-?': '\x7f',
    Enter: '\r',
    Escape: '\x1b',
    'Escape:wq': 'Escape:wq',
    Up: '\x1b[A',
    F10: '\x1b[21~',
    'M-x': '\x1bx',
    'M-Up': '\x1b\x1b[A',
    'C-xyz': 'C-xyz',
    '\u0003': '\u0003',
    constructor: 'constructor',
  };
  for (const [keystrokes, sent] of Object.entries(cases)) assert.equal(readKeys(keystrokes), sent, keystrokes);
  const application = ['Up', 'End', 'F1', 'M-Up', '[A', 'a'].map((one) => applicationKeys(readKeys(one)));
  assert.deepEqual(application, ['\x1bOA', '\x1bOF', '\x1bOP', '\x1b\x1b[A', '[A', 'a']);
});
