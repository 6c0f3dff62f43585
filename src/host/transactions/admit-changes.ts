/** Judges a change set again at the moment it enters the workspace: against the workspace as it is now, and by the policy of today. */

import type { Change, ChangeReview } from '../../runtime/changes.ts'
import { isWorse, refusalsOf } from '../../security/changes/review-changes.ts'
import type { ReviewContext } from '../../security/changes/review-context.ts'
import { readStop } from '../../service/stop-file.ts'
import type { Admission, Admit, Entering, Side } from '../../workspace/changes/contract.ts'
import type { Look } from '../../workspace/changes/look.ts'
import type { Setup } from '../api.ts'

/** One policy's judgement of changes. */
export type ChangeJudge = {
  review(changes: readonly Change[], look: Look): Promise<ChangeReview>
  /** Returns the context in which that is judged what a person undoes (`before`) or does again (`after`). */
  context(changes: readonly Change[], look: Look, to: Side): Promise<ReviewContext>
}

/** Every judge must let the changes in: that of the conversation, and that of a configuration that changed meanwhile. */
export function admitBy({ paths }: Pick<Setup, 'paths'>, judges: (entering: Entering) => Promise<readonly ChangeJudge[]>): Admit {
  return async (entering) => {
    try {
      const stop = readStop(paths.estop)
      if (stop !== undefined) return { ok: false, message: `estop: ${stop}` }
      const all = await judges(entering)
      for (const judge of all) {
        const refusal = await refusalBy(judge, entering)
        if (refusal !== undefined) return refusal
      }
      return { ok: true, ...(entering.to === 'after' ? { undoable: await refusedBack(all, entering) } : {}) }
    } catch (error) {
      return { ok: false, message: `gate.error: the changes could not be judged again (${error instanceof Error ? error.message : String(error)})` }
    }
  }
}

type Refusal = Extract<Admission, { ok: false }>

/** What a person undoes or does again needs no question; what would be refused at once then is refused only when it is new. */
async function refusalBy(judge: ChangeJudge, { changes, look, review, to, undoable }: Entering): Promise<Refusal | undefined> {
  if (review !== undefined) {
    const now = await judge.review(changes, look)
    if (!isWorse(now, review)) return undefined
    return { ok: false, message: worsening(now, review), ...(now.verdict === 'ask' ? { review: now } : {}) }
  }
  // Sets of earlier versions do not tell what was refused of them from the beginning.
  if (to === 'before' && undoable === undefined) return undefined
  const [first, ...others] = refusalsOf(changes, await judge.context(changes, look, to)).filter((why) => !undoable?.includes(why))
  if (first === undefined) return undefined
  return { ok: false, message: `${[first, ...others].slice(0, 10).join('; ')}. Nothing was changed` }
}

function worsening(now: ChangeReview, then: ChangeReview): string {
  const told = then.verdict === 'ask' ? 'shown' : 'judged'
  if (now.verdict === 'deny') return `${now.rule}: ${now.reason}`
  return `${now.rule}: since these changes were ${told}, what they do in the workspace is another thing and asks: ${now.reason}. Nothing was applied`
}

/** What undoing the set would do, judged while everything around it is as it is now. */
async function refusedBack(judges: readonly ChangeJudge[], { changes, look }: Entering): Promise<readonly string[]> {
  const back = changes.map(({ before, after, ...named }) => ({ ...named, ...(after && { before: after }), ...(before && { after: before }) }))
  const turned = turnedRound(look)
  const refused = await Promise.all(judges.map(async (judge) => refusalsOf(back, await judge.context(back, turned, 'before'))))
  return [...new Set(refused.flat())]
}

/** Paths that no change names are the same on both sides. */
function turnedRound(look: Look): Look {
  const other = { before: 'after', after: 'before' } as const
  return {
    read: (path, side, maxBytes) => look.read(path, other[side], maxBytes),
    kind: (path, side) => look.kind(path, other[side]),
    mode: (path, side) => look.mode(path, other[side]),
    link: (path, side) => look.link(path, other[side]),
    list: (path, side) => look.list(path, other[side]),
    [Symbol.dispose]() {},
  }
}
