/** Finds what an answer in English claims about the turn. A sentence that could be something else than a claim is left out. */

import type { CheckKind, GitOp } from '../../../security/command/program-runs.ts'
import type { AnswerClaim, ClaimedOp } from './contract.ts'
import { checkWords, type GrammarRow, grammar, rule } from './grammar.ts'
import { isCommand, isPath, NAME, type Sentence, sentencesOf } from './sentences.ts'

/** @returns each claim once, in the order of the answer. Pure; the time is linear in the length of the answer. */
export function findClaims(answer: string): readonly AnswerClaim[] {
  const found: AnswerClaim[] = []
  const topic: Topic = { last: '' }
  for (const sentence of sentencesOf(answer)) {
    if (/❌|✗|✘|🔴/u.test(sentence.text) || rule('hearsay').test(sentence.text.replace(rule('asYouAsked'), ' '))) continue
    found.push(...claimsIn(sentence, topic))
  }
  return distinctClaims(found)
}

/** Leaves out a claim that was made before, and one that says less about a file than another. */
export function distinctClaims(claims: readonly AnswerClaim[]): readonly AnswerClaim[] {
  const known = new Set<string>()
  const all = claims.filter((claim) => {
    const key = JSON.stringify({ ...claim, text: '' })
    return !known.has(key) && known.add(key)
  })
  const precise = new Set(all.flatMap((claim) => (claim.kind === 'file' && claim.op !== 'any' ? [claim.path] : [])))
  return all.filter((claim) => claim.kind !== 'file' || claim.op !== 'any' || !precise.has(claim.path))
}

/** Parts of a sentence that do not negate or condition each other. */
const borders = /;|\s[—–-]+\s|—|,?\s\b(?:but(?! (?:it |they )?(?:still )?fails?\b)|however|although|though|whereas|yet)\b/

type Plain = AnswerClaim extends infer Each ? (Each extends AnswerClaim ? Omit<Each, 'text'> : never) : never
/** The kinds of checks that the last part with one names. */
type Topic = { last: string }
type Frame = { readonly before: string; readonly after: string; readonly sentence: Sentence }

function claimsIn(sentence: Sentence, topic: Topic): readonly AnswerClaim[] {
  const claims: AnswerClaim[] = []
  let isOther = false
  for (const part of sentence.text.split(borders)) {
    isOther ||= rule('hypothetical').test(part)
    if (isOther) continue
    const whole = withChecks(part, sentence.names)
    const found = ledBy(part, sentence).map((claim) => ({ at: 0, claim, text: part }))
    for (const row of grammar.filter(({ needs }) => needs?.test(whole) ?? true))
      for (const match of whole.matchAll(row.pattern)) {
        const before = whole.slice(0, match.index)
        const after = whole.slice(match.index + match[0].length)
        if (!isClaimed(row, match[0], before, after)) continue
        const text = `${rule('leadIn').exec(before)?.[0] ?? ''}${match[0]}`
        const made = plain(row.kind, match, { before: `${sentence.lead} ${topic.last} ${before}`, after, sentence })
        found.push(...made.map((claim) => ({ at: match.index, claim, text })))
      }
    found.sort((a, b) => a.at - b.at)
    claims.push(...found.map(({ claim, text }): AnswerClaim => ({ ...claim, text: excerpt(text, sentence.names) })))
    topic.last = topicsOf(part, sentence.names).join(' ') || topic.last
  }
  return claims
}

function isClaimed({ about }: GrammarRow, text: string, before: string, after: string): boolean {
  const near = before.slice(before.lastIndexOf(',') + 1)
  const [negation, modal] = [rule('negation'), rule('modal')]
  if ([negation, modal, rule('past')].some((each) => each.test(near)) || rule('asks').test(before) || rule('afterwards').test(after))
    return false
  if (about === 'action' && /\b(?:is|are|was|were|been)\b/.test(text) && rule('byOthers').test(after)) return false
  if (about === 'action') return !/\bshould\b/i.test(near) && !/\b(?:you|they|he|she|someone|user)\s*$/i.test(near)
  const own = text
    .replace(/ (?:that|which) (?:were|was|used to) .*? (?=are |is |now )/i, ' ')
    .replace(about === 'none' ? /\b(?:no|zero|0|without|none|not a single|nothing)\b/i : /\bwithout\b|\bnothing$|\bno longer \w+$/i, '')
  if (negation.test(own) || modal.test(own) || rule('partly').test(after) || rule('some').test(near)) return false
  const [, part, whole] = /(\d+)\s*(?:\/|of|out of)\s*(?:the )?(\d+)/.exec(near + text) ?? []
  const now = `${near}${text}${after}`.replace(/\b(?:used to|previously|had been|formerly) \w*fail\w*/gi, ' ')
  return part === whole && (about === 'none' || !rule('failing').test(now))
}

function plain(kind: string, match: RegExpExecArray, frame: Frame): readonly Plain[] {
  const [text, first, second, third] = match
  const { before, after, sentence } = frame
  if (isCheck(kind)) return [{ kind }]
  if (kind === 'clean') return cleanOf(text, frame)
  if (kind === 'file') return fileClaims(match, sentence)
  // "Replaced it with `map`" names no command.
  if (kind === 'ran') return commandsOf(first ?? second ?? third ?? '', sentence).filter(({ command }) => !second || command.includes(' '))
  if (kind === 'installed') return installedOf(match.slice(1).find(Boolean) ?? '', sentence)
  if (kind === 'verified') return /^ ?(?:was|were)\b/i.test(text) && !/\b(?:I|we)\b/i.test(before) ? [] : [{ kind }]
  if (kind === 'effect') return [{ kind: 'done', needs: kind }]
  if (kind === 'change') return namesIn(`${before.slice(-60)}${after}`, sentence).some(isPath) ? [] : [{ kind: 'done', needs: kind }]
  return [{ kind: 'git', op: kind.replace('-', ' ') as GitOp }]
}

function isCheck(kind: string): kind is CheckKind {
  return kind in checkWords
}

/** Returns the check that the words before it name, in this part or the one before; all of them for "both". */
function cleanOf(text: string, { before, after, sentence }: Frame): readonly Plain[] {
  const near = topicsOf(/^ (?:from|by|in) (?:the )?\S+/.exec(after)?.[0] ?? '', sentence.names)
  const kinds = near.length > 0 ? near : topicsOf(before, sentence.names)
  if (kinds.length > 0) return (/^(?:both|all|each|they|commands)\b/i.test(text) ? kinds : kinds.slice(-1)).map((kind) => ({ kind }))
  return /^(?:it|they|which|that|and|all|both|each|commands)\b(?! (?:of|the|checks?|\w+ checks|green)\b)/i.test(text)
    ? []
    : [{ kind: 'clean' }]
}

const topics = (Object.keys(checkWords) as CheckKind[]).map((kind) => ({ kind, pattern: new RegExp(`\\b${checkWords[kind]}\\b`, 'gi') }))

/** Returns each kind of check that the text names, the one named last at the end. */
function topicsOf(text: string, names: readonly string[]): readonly CheckKind[] {
  const plainText = withNames(text, names)
  const found = topics.flatMap(({ kind, pattern }) => [...plainText.matchAll(pattern)].slice(-1).map(({ index }) => ({ kind, index })))
  return found.sort((a, b) => a.index - b.index).map(({ kind }) => kind)
}

const ops: { readonly [verb: string]: ClaimedOp } = {
  ...{ created: 'created', added: 'created', new: 'created', wrote: 'saved', written: 'saved', generated: 'saved', saved: 'saved' },
  ...{ updated: 'updated', modified: 'updated', edited: 'updated', changed: 'updated', rewrote: 'updated', rewritten: 'updated' },
  ...{ deleted: 'deleted', removed: 'deleted', gone: 'deleted', 'got rid of': 'deleted', renamed: 'renamed', moved: 'renamed' },
}

function opOf(verb = ''): ClaimedOp {
  return ops[verb.toLowerCase()] ?? 'any'
}

/** "`a.ts`: added the guard" says nothing about how the file itself changed; "`a.ts`: created" does. */
function isAction(text: string, verb = ''): boolean {
  return !/[:(—-]\s*(?:newly |now )?\w+$/.test(text) || /^(?:created|deleted|renamed)$/i.test(verb)
}

/** The groups of a pattern are names and a verb in any order, and after "to" the new name. */
function fileClaims([text, ...groups]: RegExpExecArray, sentence: Sentence): readonly Plain[] {
  const [first = '', second = '', to] = groups.filter((group) => group !== undefined)
  if (first.startsWith('\uE000')) return filesOf(first, isAction(text, second) ? opOf(second) : 'any', sentence)
  const op = opOf(first)
  if (op === 'renamed') return filesOf(to ?? second, to ? op : 'any', sentence)
  return to && !namesIn(second, sentence).some(isPath) ? filesOf(to, 'any', sentence) : filesOf(second, op, sentence)
}

function namesIn(list: string, { names }: Pick<Sentence, 'names'>): readonly string[] {
  return [...list.matchAll(/\uE000(\d+)\uE001/g)].map(([, index]) => names[Number(index)] ?? '')
}

function filesOf(list: string, op: ClaimedOp, sentence: Sentence): readonly Plain[] {
  const all = namesIn(list, sentence)
  return all.every(isPath) ? all.map((path) => ({ kind: 'file', path, op })) : []
}

const firstNames = new RegExp(`^\\W*(?:\\d+ )?(${NAME}(?:(?:,? and |, | )${NAME}){0,20})`)

/** Returns the claims that a list item makes by its heading: "Created:" before files, "Validation" before commands. */
function ledBy(part: string, sentence: Sentence): readonly Plain[] {
  const [verb, list] = [rule('changes').exec(sentence.lead)?.[1], firstNames.exec(part)?.[1]]
  if (list === undefined) return []
  if (verb !== undefined) return filesOf(list, opOf(verb), sentence)
  if (!rule('checks').test(sentence.lead) || [rule('negation'), rule('failing'), rule('modal')].some((each) => each.test(part))) return []
  const hasRun = /\b(?:ran|run|executed)\b/i.test(sentence.lead) ? commandsOf(list, sentence) : []
  const checks = namesIn(list, sentence).filter((name) => isCommand(name) && (!isPath(name) || tools.test(name)))
  return [...hasRun, ...checks.flatMap((name) => topicsOf(name, []).map((kind) => ({ kind })))]
}

const tools = /^(?:tsc|eslint|biome|pytest|jest|vitest|make|mypy|ruff|tox)$/

function commandsOf(list: string, sentence: Sentence) {
  const isScript = (name: string) => tools.test(name) || /^\.{0,2}\/|\.(?:sh|py|js|ts)$/.test(name)
  return namesIn(list, sentence)
    .filter((name) => isCommand(name) && (!isPath(name) || isScript(name)))
    .map((command) => ({ kind: 'ran', command }) as const)
}

function installedOf(object: string, sentence: Sentence): readonly Plain[] {
  const all = namesIn(object, sentence)
  if (all.length > 0) return all.filter((name) => /^[\w@/.-]+$/.test(name)).map((name) => ({ kind: 'installed', name }))
  if (/^(?:it|them|they|this|that|and|globally|locally|which|hook\w*|handlers?|as|to|successfully|version)$/i.test(object)) return []
  return [/^(?:dependenc|packages|requirements)/i.test(object) ? { kind: 'installed' } : { kind: 'installed', name: object }]
}

/** Adds the check that a command is, in a form that `withNames` takes away: "`npm test` passes" reads as "`npm test` tests passes". */
function withChecks(part: string, names: readonly string[]): string {
  return part.replace(/\uE000\d+\uE001/g, (token) => {
    const [name = ''] = namesIn(token, { names })
    const kind = isPath(name) && !tools.test(name) ? undefined : topicsOf(name, []).at(-1)
    return kind ? `${token}\uE003 ${kind}` : token
  })
}

function withNames(text: string, names: readonly string[]): string {
  return text
    .replace(/\uE003 \w+/g, '')
    .replace(/\uE000(\d+)\uE001/g, (_, index) => names[Number(index)] ?? '')
    .replaceAll('\uE002', '"…"')
}

function excerpt(text: string, names: readonly string[]): string {
  const line = withNames(text, names).replace(/\s+/g, ' ')
  const own = line.replace(/^[\s,:;.*✅-]*(?:(?:and|then|also) )*/iu, '').trim()
  return own.length > 120 ? `${own.slice(0, 119)}…` : own
}
