/** Judges a change set again at the moment it enters the workspace: against the workspace as it is now, and by the policy of today. */

import { errorText } from '../../kit/errors.ts'
import type { ChangeReview } from '../../runtime/changes.ts'
import { isWorse, refusalsOf } from '../../security/changes/review-changes.ts'
import type { ReviewContext } from '../../security/changes/review-context.ts'
import { readStop } from '../../service/stop-file.ts'
import type { Admission, Admit, Entering, Side } from '../../workspace/changes/contract.ts'
import { isAsSeen, type OpenLook, type ReadSet } from '../../workspace/changes/look.ts'
import { readDamage } from '../../workspace/git/read-moves.ts'
import type { Setup } from '../api.ts'

/** One policy's judgement of changes. */
export type ChangeJudge = {
  review(set: JudgedSet): Promise<ChangeReview>
  /** Returns the context for judging what a person undoes (`before`) or does again (`after`). */
  context(set: JudgedSet, to: Side): Promise<ReviewContext>
}

export type JudgedSet = Pick<Entering, 'changes' | 'look' | 'upper'>

/** The result of judging the changes first. `at` is a time of performance.now(). */
export type EarlierJudgement = { readonly at: number; readonly readSet: ReadSet; readonly undoable: readonly string[] }

/** How long the git settings of the user, which no read set names, count as unchanged. */
const FRESH_MS = 2_000

/**
 * Admits changes that every judge lets in: that of the conversation, and that of a configuration that changed meanwhile. With `judged` that
 * was done a moment ago, and nothing is judged again while all that was looked at is as it was.
 */
export function admitBy(
  { paths, changed }: Pick<Setup, 'paths' | 'changed'>,
  judges: (entering: Entering) => Promise<readonly ChangeJudge[]>,
  judged?: EarlierJudgement,
): Admit {
  return async (entering) => {
    try {
      const stop = readStop(paths.estop)
      if (stop !== undefined) return { ok: false, message: `estop: ${stop}` }
      const isFresh = judged !== undefined && performance.now() - judged.at < FRESH_MS && changed?.() === undefined
      if (isFresh && isAsSeen(judged.readSet, entering.workspace)) return { ok: true, undoable: judged.undoable }
      const [all, once] = [await judges(entering), { ...entering, look: lookOnce(entering.look) }]
      for (const judge of all) {
        const refusal = await refusalBy(judge, once)
        if (refusal !== undefined) return refusal
      }
      return { ok: true, ...(entering.to === 'after' ? { undoable: await refusedBack(all, once) } : {}) }
    } catch (error) {
      return { ok: false, message: `gate.error: the changes could not be judged again (${errorText(error)})` }
    }
  }
}

type RefusedAdmission = Extract<Admission, { ok: false }>

/** An undo or redo by a person needs no question, and is refused only for a reason that did not hold before it. */
async function refusalBy(judge: ChangeJudge, { review, to, undoable, ...set }: Entering): Promise<RefusedAdmission | undefined> {
  if (review !== undefined) {
    const now = await judge.review(set)
    if (!isWorse(now, review)) return undefined
    return { ok: false, message: worsening(now, review), ...(now.verdict === 'ask' ? { review: now } : {}) }
  }
  // Sets of earlier versions do not tell what was refused of them from the beginning.
  if (to === 'before' && undoable === undefined) return undefined
  const context = await judge.context(set, to)
  const git = to === 'before' ? readDamage({ ...set, context }) : context.git
  const [first, ...others] = refusalsOf(set.changes, { ...context, git }).filter((why) => !undoable?.includes(why))
  if (first === undefined) return undefined
  return { ok: false, message: `${[first, ...others].slice(0, 10).join('; ')}. Nothing was changed` }
}

function worsening(now: ChangeReview, then: ChangeReview): string {
  const verb = then.verdict === 'ask' ? 'shown' : 'judged'
  if (now.verdict === 'deny') return `${now.rule}: ${now.reason}`
  return `${now.rule}: since these changes were ${verb}, their effect in the workspace has changed and needs an approval: ${now.reason}. Nothing was applied`
}

/** Judges what an undo of the set would do, while everything around it is as it is now. */
export async function refusedBack(judges: readonly ChangeJudge[], { changes, look, upper }: JudgedSet): Promise<readonly string[]> {
  const back = changes.map(({ before, after, ...named }) => ({ ...named, before: after, after: before }))
  const set = { changes: back, look: turnedRound(look), upper }
  const refused = await Promise.all(judges.map(async (judge) => refusalsOf(back, await judge.context(set, 'before'))))
  return [...new Set(refused.flat())]
}

/** Returns the same look for one judgement: it asks the disk each question once, and reads contents again. */
export function lookOnce(look: OpenLook): OpenLook {
  return { ...look, kind: remembered(look.kind), mode: remembered(look.mode), link: remembered(look.link), list: remembered(look.list) }
}

function remembered<T>(ask: (path: string, side: Side) => T): (path: string, side: Side) => T {
  const known = { before: new Map<string, T>(), after: new Map<string, T>() }
  return (path, side) => {
    const found = known[side].get(path)
    if (found !== undefined || known[side].has(path)) return found as T
    const answer = ask(path, side)
    known[side].set(path, answer)
    return answer
  }
}

/** Swaps the two sides of a look. Paths that no change names are the same on both. */
function turnedRound(look: OpenLook): OpenLook {
  const other = { before: 'after', after: 'before' } as const
  return {
    read: (path, side, maxBytes) => look.read(path, other[side], maxBytes),
    kind: (path, side) => look.kind(path, other[side]),
    mode: (path, side) => look.mode(path, other[side]),
    link: (path, side) => look.link(path, other[side]),
    list: (path, side) => look.list(path, other[side]),
    outside: look.outside,
    [Symbol.dispose]() {},
  }
}
