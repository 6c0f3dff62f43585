/** Asks the person at the terminal about a call, or whether its changes may enter the workspace, and shows the exact difference. */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Conversation } from '../../host/api.ts'
import { headline, questionFold, setLines, unfolded } from '../../host/changes/change-lines.ts'
import { type FileDiff, fileDiffs, textOf } from '../../host/changes/file-diff.ts'
import { atEnd } from '../../kit/errors.ts'
import { count, cut, visible } from '../../kit/text.ts'
import type { ChangeSet, Revision } from '../../runtime/changes.ts'
import type { Proposal } from '../../runtime/event.ts'
import { withContent } from '../../security/changes/change-view.ts'
import type { ChannelTurn } from '../take-turn.ts'
import {
  type ApprovalAnswer,
  type AskPerson,
  askAboutCall,
  oneLine,
  patience,
  readAnswer,
  requestDetails,
  requestLine,
} from './approval-prompt.ts'
import { coloured, type Printed } from './printer.ts'

export type ChangeQuestion = {
  /** Stands between the difference and the prompt; ends with a newline. */
  readonly heading: string
  /** Stands above the keys that `?` shows. */
  readonly details?: string
  readonly set: ChangeSet
  readonly ask: AskPerson
  readonly color: boolean
  /** Aborted when the question is closed or the turn is cancelled. */
  readonly signal: AbortSignal
}

/** `revision`: what of the change set the person wants, when that is not all of it as it is. */
export type ChangeAnswer = ApprovalAnswer & { readonly revision?: Revision }

/** @returns undefined when the terminal is closed or the question is closed */
export async function askAboutChanges(question: ChangeQuestion): Promise<ChangeAnswer | undefined> {
  const { set, ask, color, signal, heading, details = '' } = question
  const state: { set: ChangeSet; revision?: Revision; misses: number } = { set, misses: 0 }
  const shown = (fold = questionFold): Printed => coloured(setLines(state.set, fold), color)
  const line = promptLine(set)
  let words: Printed = ['\n', ...shown(), heading, line]
  for (;;) {
    const typed = await ask(words, signal)
    if (typed === undefined) return undefined
    const answer = readAnswer(typed)
    const key = typed.trim().toLowerCase()
    if (answer.kind === 'no') return answer
    if (answer.kind !== 'unclear')
      return state.revision ? { ...answer, revision: state.revision, note: partOf(set, state.revision) } : answer
    if (key === 'd') words = [...shown(unfolded), line]
    else if (/^[se]$/.test(key) && set.revise) {
      const change = key === 's' ? await chooseFiles(question, state.revision) : await editFiles(state.set, set, state.revision, ask)
      if (typeof change === 'object') Object.assign(state, { revision: change, set: revised(set, change) })
      words = typeof change === 'string' ? [`${change}\n`, line] : [...shown(), line]
    } else {
      if (set.stage === 'proposed' && key !== '?') return { kind: 'no' }
      if (++state.misses >= patience || typed.includes('\n')) return undefined
      words = `${details}${help(set)}${line}`
    }
  }
}

/** Describes the chosen part for the record, beside the yes, and for the model. */
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

function promptLine({ stage, revise }: ChangeSet): string {
  if (stage === 'proposed') return 'Approve? [y/N/a] '
  return revise ? 'Apply these changes? [y/N/s/e/d/a/?] ' : 'Apply these changes? [y/N/d/a/?] '
}

function help({ stage, revise }: ChangeSet): string {
  const yes = stage === 'made' ? 'apply them' : 'allow this call once'
  const no = stage === 'made' ? 'drop them' : 'refuse it'
  const keys: readonly (readonly [string, string])[] = [
    ['y', yes],
    ['n', `${no}; the model gets what you type after it: n use tabs`],
    ...(revise ? ([['s', 'choose the files to apply; the others are dropped']] as const) : []),
    ...(revise ? ([['e', 'open the new text in your editor; what you save is applied']] as const) : []),
    ['d', 'show the whole difference'],
    ['a', stage === 'made' ? 'apply them, and ask no more about such changes; the next line says which' : 'allow it, from now on too'],
  ]
  return keys.map(([key, meaning]) => `  ${key}  ${meaning}\n`).join('')
}

/** Applies what the person chose and edited to a change set, so that the next question shows exactly what a yes applies. */
function revised(set: ChangeSet, revision: Revision): ChangeSet {
  const only = new Set(revision.only)
  const mine = (path: string) => revision.edited?.get(path)
  return {
    ...set,
    changes: set.changes.filter(({ path }) => only.has(path)).map((change) => withContent(change, mine(change.path))),
    content(change, side, maxBytes) {
      const own = side === 'after' ? mine(change.path) : undefined
      if (own === undefined) return set.content(change, side, maxBytes)
      return own.length <= maxBytes ? own : undefined
    },
  }
}

const [mostFiles, mostBytes] = [20, 1024 * 1024]

type Copy = { readonly path: string; readonly copy: string; readonly content: Uint8Array }

/**
 * Opens the new text of changed files in the person's editor, on copies in a private folder. `shown` is the change set as it is revised already.
 * @returns the revision with what was changed in the editor, or a sentence that says why there is none
 */
async function editFiles(shown: ChangeSet, set: ChangeSet, revision: Revision | undefined, ask: AskPerson): Promise<Revision | string> {
  const texts = shown.changes.flatMap((change) => {
    const content = change.after?.kind === 'file' ? shown.content(change, 'after', mostBytes) : undefined
    return content !== undefined && textOf(content) !== undefined ? [{ path: change.path, content }] : []
  })
  if (texts.length === 0) return 'the changes contain no new text to edit'
  if (texts.length > mostFiles) return `${texts.length} files are too many for an editor, at most ${mostFiles}; choose some with s first`
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-edit-'))
  using _end = atEnd(() => rmSync(folder, { recursive: true, force: true }))
  const copies = texts.map(({ path, content }, at): Copy => ({ path, content, copy: join(folder, placeOf(path, at)) }))
  for (const { copy, content } of copies) {
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 })
    writeFileSync(copy, content, { mode: 0o600 })
  }
  const code = await ask.edit(copies.map(({ copy }) => copy))
  if (code !== 0) return `the editor ended with ${code ?? 'an error'}; nothing was taken over`
  const files = copies.flatMap(savedIn)
  if (files.length === 0) return 'nothing was edited'
  const { only = set.changes.map(({ path }) => path), edited = [] } = revision ?? {}
  return { only, edited: new Map([...edited, ...files]) }
}

/** Keeps the name, from which an editor knows the language; a number keeps two files apart. */
function placeOf(path: string, at: number): string {
  return join(String(at + 1), path.slice(path.lastIndexOf('/') + 1))
}

function savedIn({ path, copy, content }: Copy): readonly (readonly [string, Uint8Array])[] {
  // The person may have removed the copy in the editor; that says nothing about the change.
  if (!existsSync(copy)) return []
  const saved = new Uint8Array(readFileSync(copy))
  return Buffer.compare(saved, content) === 0 ? [] : [[path, saved]]
}

/**
 * Lets the person choose which files of a change set are applied: units that only make sense as a whole are chosen as a whole.
 * @returns the revision with the chosen paths; undefined when the person went back
 */
async function chooseFiles({ set, ask, signal }: ChangeQuestion, revision?: Revision): Promise<Revision | undefined> {
  const units = unitsOf(set)
  const list = units.map(({ label }, at) => `${String(at + 1).padStart(4)}  ${label}\n`).join('')
  let words = `${list}Which to apply? Numbers such as 1,3-5; Enter goes back: `
  for (;;) {
    const typed = await ask(words, signal)
    if (typed === undefined || typed.trim() === '') return undefined
    const numbers = readNumbers(typed, units.length)
    if (typeof numbers !== 'string')
      return { ...revision, only: withFolders(set, new Set(units.flatMap(({ paths }, at) => (numbers.has(at + 1) ? paths : [])))) }
    words = `${numbers}\nWhich to apply? `
  }
}

/** A renamed file is one unit, and so is a git directory: a part of it would be a damaged repository. */
function unitsOf(set: ChangeSet) {
  const units = new Map<string, FileDiff[]>()
  for (const diff of fileDiffs(set)) {
    const key = gitDirectoryOf(diff.path) ?? diff.path
    units.set(key, [...(units.get(key) ?? []), diff])
  }
  return [...units].map(([key, diffs]) => {
    const [only] = diffs
    const label =
      only && gitDirectoryOf(only.path) === undefined
        ? headline(only)
        : `git directory ${visible(key)} (${count(diffs.length, 'path')}, only as a whole)`
    return { label, paths: diffs.flatMap(({ changes }) => changes.map(({ path }) => path)) }
  })
}

/** Returns the path up to and including a `.git`, in any spelling that a case-insensitive file system takes for it. */
function gitDirectoryOf(path: string): string | undefined {
  if (path.startsWith('/')) return 'outside the workspace'
  const parts = path.split('/')
  const at = parts.findIndex((part) => part.normalize('NFC').toLowerCase() === '.git')
  return at < 0 ? undefined : parts.slice(0, at + 1).join('/')
}

/** Reads `1,3-5 8`. @returns a sentence when a part is not a number of the list */
export function readNumbers(text: string, most: number): ReadonlySet<number> | string {
  const numbers = new Set<number>()
  for (const part of text.split(/[\s,]+/).filter((word) => word !== '')) {
    const [, from = '', to = from] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part) ?? []
    const [first, last] = [Number(from), Number(to)]
    if (from === '' || first < 1 || last > most || first > last)
      return `${visible(part)} is not on the list: numbers from 1 to ${most}, or 2-4`
    for (let number = first; number <= last; number++) numbers.add(number)
  }
  return numbers.size > 0 ? numbers : 'this is not a number'
}

/** A chosen file needs its new folders; a deleted folder can only go when everything that was deleted in it is chosen. */
function withFolders({ changes }: ChangeSet, chosen: Set<string>): readonly string[] {
  const within = (path: string, folder: string) => path.startsWith(`${folder}/`)
  return changes
    .filter(({ path, before, after }) => {
      if (after?.kind === 'folder' && !before) return chosen.has(path) || [...chosen].some((each) => within(each, path))
      if (before?.kind !== 'folder' || after) return chosen.has(path)
      return chosen.has(path) && changes.every((other) => !within(other.path, path) || chosen.has(other.path))
    })
    .map(({ path }) => path)
}

type Person = {
  readonly conversation: Conversation
  readonly ask: AskPerson
  readonly color: boolean
  readonly tell: (line: string) => void
  /** Aborted by Ctrl-C, which withdraws an open question. */
  readonly signal: AbortSignal
}

/** Asks the person at the terminal about a call or about its changes, and withdraws the question when it was decided elsewhere first. */
export function personDecides(person: Person): ChannelTurn['onGate'] {
  const { conversation, signal, tell } = person
  const decide: ChannelTurn['onGate'] = async (gateId, proposal) => {
    const answer = await putTo(person, gateId, proposal)
    if (answer === undefined && !conversation.gate(gateId)) {
      if (!signal.aborted) tell('the question is closed: it was answered elsewhere, or its time is over')
      return
    }
    const { kind, note, revision } = answer ?? { kind: 'no' }
    const allow = kind === 'yes' || kind === 'always'
    const revised = allow && revision ? await (await conversation.changesOf(gateId))?.revise?.(revision) : undefined
    if (revised?.ok === false) {
      tell(`that part cannot be applied: ${revised.message}`)
      return await decide(gateId, proposal)
    }
    const decision = { allow, by: 'terminal', ...(note ? { note } : {}), ...(revised?.ok ? { part: revised.part } : {}) }
    const rejected = await conversation.approve(gateId, decision)
    if (signal.aborted) return
    if (rejected !== undefined) tell('too late: the question is closed already; nothing was allowed')
    else if (kind === 'always') tell(conversation.allowAlways(proposal) ?? 'this call cannot be allowed for good; allowed once')
  }
  return decide
}

/** Withdraws the question when it closes: it was answered elsewhere, it expired, or the run ended (estop, a limit). */
async function putTo(person: Person, gateId: string, { call, judgement }: Proposal): Promise<ChangeAnswer | undefined> {
  const { conversation, ask, color } = person
  const closed = new AbortController()
  void conversation.gateClosed(gateId).then(() => closed.abort())
  const signal = AbortSignal.any([person.signal, closed.signal])
  const asked = { tool: call.name, judgement, input: call.input }
  const set = await conversation.changesOf(gateId)
  if (!set) return await askAboutCall(asked, ask, signal)
  const { command } = call.input
  const what =
    set.stage === 'made' && typeof command === 'string' ? `${visible(call.name)}: ${oneLine(command)}` : oneLine(judgement.summary)
  const heading = requestLine(cut(what, 300), judgement)
  return await askAboutChanges({ heading, details: requestDetails(asked), set, ask, color, signal })
}
