/**
 * The tags of JUnit's XML by which a failed test is recognised anywhere in a text. The number of attributes is bounded, so
 * that no text makes the search slow.
 */
const tag =
  /<\/testcase\s*>|<(failure|error)[\s/>]|<(testsuite|testcase)((?:\s+[^\s=<>"'/]+\s*=\s*(?:"[^"]*"|'[^']*')){0,32})\s*(\/?)>/g;
const attribute = /([^\s=<>"'/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

export interface FailedCase {
  readonly kind: 'failure' | 'error';
  readonly suite: string;
  readonly attributes: ReadonlyMap<string, string>;
}

/**
 * Yields the failed cases in a text, also inside XML comments and CDATA sections: text before a report may open such a
 * section, and text after it may close one.
 */
export function* failedCases(text: string): Generator<FailedCase> {
  let suite = '';
  let open: ReadonlyMap<string, string> | null = null;
  for (const [, kind, element, written = '', closed] of text.matchAll(tag)) {
    if (element === 'testsuite') suite = attributesIn(written).get('name') ?? '';
    else if (element === 'testcase') open = closed === '/' ? null : attributesIn(written);
    else if (kind === undefined) open = null;
    else if (open !== null) yield { kind: kind === 'error' ? 'error' : 'failure', suite, attributes: open };
  }
}

function attributesIn(written: string): ReadonlyMap<string, string> {
  return new Map(
    [...written.matchAll(attribute)].map(([, name = '', double, single = '']) => [name, unescaped(double ?? single)]),
  );
}

const unescaped = (value: string): string =>
  value.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,4}));/gi, (whole, decimal?: string, hex?: string, name = '') => {
    const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
    return code <= 0x10ffff ? String.fromCodePoint(code) : (entities[name] ?? whole);
  });
