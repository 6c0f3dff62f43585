/** Colours the lines of a shown change set for a terminal. */

import type { Environment } from '../../../host/api.ts'
import type { ShownLine } from '../../../host/changes/change-lines.ts'
import type { Mark, Printed } from '../printer.ts'

/** Returns lines with their newlines; without `color` the same words without marks. */
export function coloured(lines: readonly ShownLine[], color: boolean): Exclude<Printed, string> {
  return lines.flatMap(({ tone, text }) => {
    const [begin, end] = (color ? marks[tone] : undefined) ?? []
    return begin && end ? [{ mark: begin }, text, { mark: end }, '\n'] : [`${text}\n`]
  })
}

const marks: { readonly [tone in ShownLine['tone']]?: readonly [Mark['mark'], Mark['mark']] } = {
  header: ['bold', 'normal'],
  place: ['cyan', 'uncoloured'],
  added: ['green', 'uncoloured'],
  removed: ['red', 'uncoloured'],
  note: ['dim', 'normal'],
}

/** Whether a terminal with this environment shows colours. */
export function wantsColor({ NO_COLOR, TERM }: Environment): boolean {
  return !NO_COLOR && TERM !== 'dumb'
}
