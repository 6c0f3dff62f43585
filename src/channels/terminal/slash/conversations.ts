/** Answers /resume, /rename, /fork and /export, and writes the file of a conversation. */

import { writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import type { ConversationFile, HostRecords } from '../../../host/contract/records-api.ts'
import { markdownOf } from '../../../host/records/conversation-file.ts'
import { hasCode } from '../../../kit/errors.ts'
import { count, didYouMean, flat, quote, visible } from '../../../kit/text.ts'
import type { ConversationEntry } from '../../../memory/conversations/search-turns.ts'
import { readAnswer } from '../approval-prompt.ts'
import { cutTo } from '../status-line.ts'
import type { Slash, SlashAnswer } from './contract.ts'

export const conversationAnswers = {
  resume,
  rename: onceSaid('/rename', rename),
  fork: onceSaid('/fork', fork),
  export: onceSaid('/export', exportFile),
}

function onceSaid(command: string, answer: SlashAnswer): SlashAnswer {
  return async (typed, argument) =>
    typed.host.hasConversation(typed.conversation.id) ? answer(typed, argument) : `${command} works once something was said here\n`
}

async function resume({ host, conversation, replace, ask, setup }: Slash, words: string): Promise<string> {
  const { conversations } = await host.records()
  const chosen = await choose({ ...conversations, ask, write: setup.context.process.stdout.write }, words)
  if (chosen === undefined) return conversations.choices({ limit: 1 }).length === 0 ? 'no conversations yet\n' : 'nothing was chosen\n'
  const next = chosen.conversationId === conversation.id ? conversation : await replace({ id: chosen.conversationId })
  const elsewhere =
    chosen.folder === null || chosen.folder === next.workspace
      ? ''
      : `; it was begun in ${visible(chosen.folder)}, and works in ${visible(next.workspace)} now`
  return `resumed: ${visible(chosen.title)} (${count(chosen.turns, 'turn')})${elsewhere}\n`
}

type Choosing = Pick<Slash, 'ask'> & Pick<HostRecords['conversations'], 'choices'> & { readonly write: (text: string) => void }

const shown = 12

/** Lets a person choose one of many: a number chooses, words narrow the list, an empty line chooses nothing. */
async function choose({ write, ask, choices }: Choosing, first: string): Promise<ConversationEntry | undefined> {
  let words = first
  for (;;) {
    const found = choices({ words, limit: shown + 1 })
    const rows = found.slice(0, shown)
    if (found.length === 0 && words === '') return undefined
    const titles = found.length === 0 ? choices({ limit: 200 }).map(({ title }) => title) : []
    if (found.length === 0) write(`nothing matches ${quote(words)}${didYouMean(words, titles)}\n`)
    write(rows.map((each, index) => `${String(index + 1).padStart(3)}  ${entryLine(each)}\n`).join(''))
    if (found.length > shown) write('     … and more: type words to narrow the list\n')
    const answer = (await ask('Number, or words to narrow the list (Enter: none): '))?.trim() ?? ''
    if (answer === '') return undefined
    const chosen = /^\d+$/.test(answer) ? rows[Number(answer) - 1] : undefined
    if (chosen !== undefined) return chosen
    if (/^\d+$/.test(answer)) write(`no ${answer} in this list\n`)
    else words = answer
  }
}

/** Formats a conversation on one line: name, age, folder, and the first words when it has another name. */
export function entryLine({ title, updated, folder, firstWords }: ConversationEntry): string {
  const home = homedir()
  const where = folder === null ? '' : folder.startsWith(`${home}/`) ? `~${folder.slice(home.length)}` : folder
  const words = firstWords === title ? '' : `  ${short(firstWords, 30)}`
  return `${short(title, 32).padEnd(32)}  ${ageOf(updated).padStart(7)}  ${short(where, 28)}${words}`.trimEnd()
}

function short(text: string, columns: number): string {
  return cutTo(visible(flat(text)), columns)
}

function ageOf(at: number): string {
  const minutes = Math.max(0, Math.floor((Date.now() - at) / 60_000))
  if (minutes < 60) return minutes === 0 ? 'now' : `${minutes} min`
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`
}

async function rename({ host, conversation }: Slash, name: string): Promise<string> {
  if (name === '') return 'usage: /rename NAME\n'
  const { title } = (await host.records()).conversations.rename(conversation.id, name)
  return `its name is now: ${visible(title)}\n`
}

async function fork({ host, conversation, replace }: Slash, turn: string): Promise<string> {
  if (turn !== '' && !/^\d{1,9}$/.test(turn)) return 'usage: /fork, or /fork TURN with the number of the last turn to copy\n'
  const { conversations } = await host.records()
  const copy = await conversations.fork(conversation.id, turn === '' ? {} : { turns: Number(turn) })
  await replace({ id: copy.conversationId })
  return `this is now: ${visible(copy.title)} (${count(copy.turns, 'turn')}); the one before stays as it was: /resume\n`
}

async function exportFile({ host, conversation, ask, setup }: Slash, name: string): Promise<string> {
  const file = (await host.records()).conversations.export(conversation.id)
  const path = resolve(setup.context.cwd, name === '' ? fileNameOf(file) : name)
  const mayReplace = async () => readAnswer(await ask(`${visible(path)} exists. Replace it? [y/N] `)).kind === 'yes'
  return (await writeExport(path, textOf(path, file), mayReplace)) ? `written: ${visible(path)}\n` : 'nothing was written\n'
}

function fileNameOf({ title, conversationId }: ConversationFile): string {
  const words = title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-|-$/g, '')
  return `${words || conversationId}.md`
}

/** Returns JSON for a name that ends in .json, else Markdown. */
export function textOf(path: string, file: ConversationFile): string {
  return path.endsWith('.json') ? `${JSON.stringify(file, undefined, 2)}\n` : markdownOf(file)
}

/** Writes a file, which only its owner reads when it is new. @returns false when there is one already that may not be replaced */
export async function writeExport(path: string, text: string, mayReplace: () => Promise<boolean>): Promise<boolean> {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    if (!(await mayReplace())) return false
    writeFileSync(path, text, { mode: 0o600 })
  }
  return true
}
