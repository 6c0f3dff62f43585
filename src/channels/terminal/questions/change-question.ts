/** Asks the person whether changes may enter the workspace, and shows the exact difference. */

import { questionFold, setLines, unfolded } from '../../../host/changes/change-lines.ts'
import { count } from '../../../kit/count.ts'
import { visible } from '../../../kit/text.ts'
import type { ChangeSet, Revision } from '../../../runtime/changes.ts'
import type { Printed } from '../printer.ts'
import { type Answer, type AskPerson, readAnswer } from './approval-prompt.ts'
import { chooseFiles } from './choose-files.ts'
import { coloured } from './coloured.ts'
import { editFiles } from './edit-files.ts'
import { revised } from './revised.ts'

export type ChangeQuestion = {
  /** Ends with a newline. */
  readonly heading: string
  readonly set: ChangeSet
  readonly ask: AskPerson
  readonly color: boolean
  /** Aborted when the question is closed or the turn is cancelled. */
  readonly signal: AbortSignal
}

/** `revision`: what of the change set the person wants, when that is not all of it as it is. */
export type ChangeAnswer = Answer & { readonly revision?: Revision }

/** So many answers in a row that mean nothing are a no: a terminal that answers by itself must not ask for ever. */
const patience = 8

/** @returns undefined when the person is gone or the question is closed */
export async function askAboutChanges(question: ChangeQuestion): Promise<ChangeAnswer | undefined> {
  const { set, ask, color, signal, heading } = question
  const state: { set: ChangeSet; revision?: Revision; misses: number } = { set, misses: 0 }
  const shown = (fold = questionFold): Printed => coloured(setLines(state.set, fold), color)
  const line = promptLine(set)
  let words: Printed = [heading, ...shown(), line]
  for (;;) {
    const typed = await ask(words, signal)
    if (typed === undefined) return undefined
    const answer = readAnswer(typed)
    const key = typed.trim().toLowerCase()
    if (answer.kind === 'no') return answer
    if (answer.kind !== 'unclear')
      return state.revision ? { ...answer, revision: state.revision, note: partOf(set, state.revision) } : answer
    if (key === 'd') words = [...shown(unfolded), line]
    else if (key === 's' && set.revise) {
      const chosen = await chooseFiles({ set, ask, signal })
      if (chosen) Object.assign(state, { revision: { ...state.revision, only: chosen } })
      Object.assign(state, { set: revised(set, state.revision) })
      words = [...shown(), line]
    } else if (key === 'e' && set.revise) {
      const edited = await editFiles({ set: state.set, ask })
      if (edited.ok) Object.assign(state, { revision: withEdits(set, state.revision, edited.files) })
      Object.assign(state, { set: revised(set, state.revision) })
      words = edited.ok ? [...shown(), line] : [`${edited.message}\n`, line]
    } else {
      if (set.stage === 'proposed' && key !== '?') return { kind: 'no' }
      if (++state.misses >= patience || typed.includes('\n')) return undefined
      words = `${help(set)}${line}`
    }
  }
}

/** Goes into the record beside the yes, and to the model. */
function partOf({ changes }: ChangeSet, { only, edited }: Revision): string {
  const own = [...(edited?.keys() ?? [])].filter((path) => only.includes(path))
  return [
    only.length < changes.length ? `the person applied only ${listed(only)} and dropped the rest` : 'the person applied the changes',
    ...(own.length > 0 ? [`and edited ${listed(own)} first`] : []),
  ].join(', ')
}

function listed(paths: readonly string[]): string {
  const more = paths.length > 20 ? ` and ${count(paths.length - 20, 'path')} more` : ''
  return `${paths.slice(0, 20).map(visible).join(', ')}${more}`
}

function withEdits(set: ChangeSet, revision: Revision | undefined, files: ReadonlyMap<string, Uint8Array>): Revision {
  const { only = set.changes.map(({ path }) => path), edited } = revision ?? {}
  return { only, edited: new Map([...(edited ?? []), ...files]) }
}

function promptLine({ stage, revise }: ChangeSet): string {
  if (stage === 'proposed') return 'Approve? [y/N/a] '
  return revise ? 'Apply these changes? [y/N/s/e/d/a/?] ' : 'Apply these changes? [y/N/d/a/?] '
}

function help({ stage, revise }: ChangeSet): string {
  const yes = stage === 'made' ? 'apply them' : 'allow this call once'
  const no = stage === 'made' ? 'drop them' : 'refuse it'
  const keys: readonly (readonly [string, string])[] = [
    ['y', yes],
    ['n', `${no}; what you type after it is told to the model: n use tabs`],
    ...(revise ? ([['s', 'choose the files to apply; the others are dropped']] as const) : []),
    ...(revise ? ([['e', 'open the new text in your editor; what you save is applied']] as const) : []),
    ['d', 'show the whole difference'],
    ['a', stage === 'made' ? 'apply them, and ask no more about such changes; the next line says which' : 'allow it, from now on too'],
  ]
  return keys.map(([key, meaning]) => `  ${key}  ${meaning}\n`).join('')
}
