import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createEmulator } from '../../../../infra/agents/terminal/emulator.ts';
import { textOfLine } from '../../../../infra/agents/terminal/grid.ts';
import { readKeys } from '../../../../infra/agents/terminal/keys.ts';
import { createView, shorten } from '../../../../infra/agents/terminal/view.ts';

const csi = '\x1b[';

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
    rows: () => emulator.grid.lines.map(textOfLine),
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
  'a sequence that is broken': [`${csi}3\n1\x1b\x01z`, ['', '1z']],
};

describe('the screen of a terminal', () => {
  for (const [title, [printed, expected]] of Object.entries(screens)) {
    it(`shows ${title}`, () => {
      const whole = open();
      whole.write(printed);
      assert.deepEqual(whole.rows().join('\n').trimEnd().split('\n'), expected);
      // The same in pieces that end within characters and sequences.
      const pieces = open();
      for (const byte of Buffer.from(printed)) pieces.emulator.write(Buffer.from([byte]));
      assert.deepEqual(pieces.rows(), whole.rows());
    });
  }

  it('is that of a full-screen program until it ends', () => {
    const { write, rows, show, emulator } = open();
    write(`$ vi\r\n${csi}?1049h${csi}Htext${csi}2;3H`);
    assert.ok(emulator.alternate);
    assert.equal(show(), '[the screen of a full-screen program, with the cursor in row 2, column 3]\ntext');
    write(`${csi}?1049l$ `);
    assert.deepEqual(rows().slice(0, 2), ['$ vi', '$']);
    assert.equal(show(), '$ vi\n$');
  });

  it('answers what programs ask', () => {
    const { write, answers } = open();
    write(`ab\r\nc${csi}6n${csi}5n${csi}c${csi}>c`);
    assert.deepEqual(answers, [`${csi}2;2R`, `${csi}0n`, `${csi}?1;2c`]);
  });

  it('counts the prompts of a shell', () => {
    const { write, emulator } = open();
    write('\x1b]133;A\x1b\\$ ls\r\na\r\n\x1b]133;A\x07$ \x1b]133;B\x07');
    assert.deepEqual([emulator.prompts, emulator.atPrompt], [2, true]);
    write('ls');
    assert.ok(emulator.atPrompt);
    write('\r\n');
    assert.ok(!emulator.atPrompt);
    for (let line = 0; line < 9; line += 1) write('a\r\n');
    write('b\x1b]133;A\x07$ ');
    assert.ok(emulator.atPrompt);
    write(`${csi}?1049h`);
    assert.ok(!emulator.atPrompt);
  });

  it('stays whole and small whatever is printed', () => {
    const { emulator, rows, show } = open();
    let seed = 7;
    const random = (): number => {
      seed = (seed * 1103515245 + 12345) % 2 ** 31;
      return seed;
    };
    const bytes = Buffer.from(
      Array.from({ length: 300_000 }, () => (random() % 7 === 0 ? 0x1b : (random() >> 8) % 256)),
    );
    emulator.write(bytes);
    emulator.write(Buffer.from(`${csi}!p\x1b]${'x'.repeat(100_000)}\x07a${'\u0301'.repeat(100_000)}`));
    assert.equal(rows().length, 5);
    for (const { cells } of emulator.grid.lines) assert.equal(cells.length, 10);
    assert.ok(rows().join('').length < 2000);
    assert.ok(Buffer.byteLength(show()) < 10_100);
  });
});

describe('what a model sees of a terminal', () => {
  it('is the line of the last prompt and what came after it', () => {
    const { write, show } = open();
    write('$ ');
    assert.equal(show(), '$');
    write('ls\r\na\r\nb\r\n$ ');
    assert.equal(show(), '$ ls\na\nb\n$');
    assert.equal(show(), '$');
    write('x\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n$ ');
    assert.equal(show(), '$ x\n1\n2\n3\n4\n5\n6\n$');
  });

  it('joins a line that was too long, and shows lines that were written again', () => {
    const { write, show } = open();
    write('$ cat\r\n0123456789abcdefghij01234\r\n$ ');
    assert.equal(show(), '$ cat\n0123456789abcdefghij01234\n$');
    write(`${csi}Hagain${csi}5;3H`);
    assert.match(show(), /^again/);
    write(`${csi}H${csi}2J$ `);
    assert.equal(show(), '$');
  });

  it('is the first and the last part of much output', () => {
    const { write, show } = open();
    write('$ ');
    show();
    write('seq\r\n');
    for (let line = 0; line < 50_000; line += 1) write(`${line}\r\n`);
    const shown = show();
    assert.match(shown, /^\$ seq\n0\n1\n2\n/);
    assert.match(shown, /\n198\n\[\d+ lines were not kept\]\n\d+\n/);
    assert.match(shown, /\n\[\d+ bytes left out\]\n/);
    assert.match(shown, /\n49998\n49999$/);
    assert.ok(Buffer.byteLength(shown) < 10_100, `${shown.length}`);
    write('$ ls\r\n$ ');
    assert.equal(show(), '$ ls\n$');
  });

  it('is cut between characters', () => {
    assert.equal(shorten('ééééé', 10), 'ééééé');
    assert.equal(shorten('ééééé', 6), 'é\n[4 bytes left out]\né');
  });
});

it('keystrokes are the names of keys, or a text', () => {
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
});
