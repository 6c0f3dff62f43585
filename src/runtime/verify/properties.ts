/** Lists the properties by the names that the design gives them. */

import { LIVELOCK } from '../../kernel/explore.ts'
import type { Property } from '../../kernel/property.ts'
import type { RunEvent } from '../event.ts'
import type { RunLimits } from '../program.ts'
import { P15 } from './answers.ts'
import { nothingLeavesUnasked } from './guards/rule-of-two.ts'
import { withinChannel } from './guards/within-channel.ts'
import { noModeWithoutChecks, onlyTheWorldAnswers, stopsGetThrough } from './outside.ts'
import { resolvedOnce, somebodyOwesAnAnswer } from './progress.ts'
import {
  goingInCircles,
  nothingAfterTheEnd,
  nothingBeginsAfterAStop,
  onlyAfterAYes,
  onlyAnswersToQuestions,
  onlyWhatTheGateLets,
  takingTurns,
  withinLimits,
} from './safety-properties.ts'

/** `holds` is null if the checker decided nothing; `note` says why. */
export type Finding = { readonly id: string; readonly says: string; readonly holds: boolean | null; readonly note?: string }

export const P9 = 'A replay of the external events selects the same events, in the same order.'

/** There is nothing to explore until checks exist. */
const P6: Finding = {
  id: 'P6',
  says: 'Wiggum mode ends well only after every check passed since the last edit.',
  holds: null,
  note: 'not applicable until checks exist; wiggum mode is refused',
}

export function propertiesOf(limits: RunLimits): { readonly id: string; readonly property: Property<RunEvent> }[] {
  return [
    { id: 'P1', property: onlyWhatTheGateLets },
    { id: 'P2', property: onlyAfterAYes },
    { id: 'P3', property: nothingBeginsAfterAStop },
    { id: 'P4', property: nothingAfterTheEnd },
    { id: 'P5', property: withinLimits(limits) },
    { id: 'P7', property: resolvedOnce },
    { id: 'P8', property: somebodyOwesAnAnswer },
    { id: 'P10', property: takingTurns(limits) },
    { id: 'P11', property: onlyAnswersToQuestions },
    { id: 'P12', property: goingInCircles(limits) },
    { id: 'P13', property: onlyTheWorldAnswers },
    { id: 'P14', property: stopsGetThrough },
    { id: 'P16', property: noModeWithoutChecks },
    { id: 'P17', property: nothingLeavesUnasked },
    { id: 'P18', property: withinChannel(limits) },
  ]
}

/** `unanswered`: why P15 is undecided although nothing broke. */
type Outcome = { readonly broken?: string; readonly cut: readonly string[]; readonly unanswered?: string }

/**
 * Returns all findings in order. `broken` names the property that broke; after a break, or in a search that was `cut`, the others are
 * undecided.
 */
export function findings({ broken, cut, unanswered }: Outcome): Finding[] {
  const explored = propertiesOf({ maxToolRounds: 0, maxParallel: 0 }).map(({ id, property: { name } }) => ({ id, says: name, name }))
  const asked = [
    ...explored,
    { id: 'P9', says: P9, name: P9 },
    { id: 'P15', says: P15, name: P15 },
    { id: 'P0', says: 'Every chain of consequences comes to rest.', name: LIVELOCK },
  ]
  const note = broken === undefined ? `cut off after too many states: ${cut.join(', ')}` : 'not decided'
  const open = broken !== undefined || cut.length > 0
  const decided = asked.map(({ id, says, name }): Finding => {
    if (name === broken) return { id, says, holds: false }
    if (open) return { id, says, holds: null, note }
    return name === P15 && unanswered !== undefined ? { id, says, holds: null, note: unanswered } : { id, says, holds: true }
  })
  const order = (id: string) => Number(id.slice(1))
  return [...decided, P6].sort((a, b) => order(a.id) - order(b.id))
}
