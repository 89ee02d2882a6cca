/** A value of an environment that the host decides: that of its variable, or the fallback if tasks may not have that. */
export interface HostValue {
  readonly name: string;
  readonly fallback: string | undefined;
}

/** Harbor's form of such a value: `${NAME}` or `${NAME:-value}`, as a whole. */
const form = /^\$\{([^}:]+)(?::-(.*))?\}$/s;
/** A name that no variable can have, so that its fallback is the value. */
const noName = '=';

/** Reads a value of an environment; null for one that is the same on each host. */
export function hostValueIn(value: string): HostValue | null {
  const [, name, fallback] = form.exec(value) ?? [];
  return name === undefined ? null : { name, fallback };
}

export const writeHostValue = ({ name, fallback }: HostValue): string =>
  `\${${name}${fallback === undefined ? '' : `:-${fallback}`}}`;

/** Writes a text as a value of an environment that is this text on each host, also one that looks like a variable. */
export const literalValue = (text: string): string =>
  hostValueIn(text) === null ? text : writeHostValue({ name: noName, fallback: text });

/** Returns the text that `literalValue` wrote because it looks like a variable; null for any other value. */
export function hiddenLiteral(value: string): string | null {
  const { name, fallback = null } = hostValueIn(value) ?? {};
  return name === noName ? fallback : null;
}
