import { Refusal } from '../../gateway/refusal.ts';
import { type Renderer, renderText } from './render.ts';

/** How a template wants the arguments of a call: as an object, as JSON text, or not at all since it prints no calls. */
export type ArgumentsForm = 'object' | 'text' | 'none';

const probe = 'temper-argument';

/** Found by trying, as templates don't say it. */
export function argumentsFormOf(renderer: Omit<Renderer, 'argumentsForm'>): ArgumentsForm {
  const forms = ['object', 'text'] as const;
  return forms.find((argumentsForm) => printsArguments({ ...renderer, argumentsForm })) ?? 'none';
}

function printsArguments(renderer: Renderer): boolean {
  const call = { id: 'call', name: 'tool', arguments: JSON.stringify({ x: probe }) };
  try {
    const text = renderText(
      renderer,
      [
        { role: 'user', text: 'x' },
        { role: 'assistant', text: '', reasoning: '', toolCalls: [call] },
      ],
      [],
      'last-message',
    );
    return text.includes(probe);
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}
