/** Implements `session list | show | rename | fork | delete | export | import`, for conversations. */

import { resolve } from 'node:path'
import { tellOnStderr, terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { readStdin } from '../../../channels/terminal/input-stream.ts'
import { entryLine, textOf, writeExport } from '../../../channels/terminal/slash/conversations.ts'
import { stdinKind } from '../../../channels/terminal/tty.ts'
import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import type { Host } from '../../../host/api.ts'
import type { HostRecords } from '../../../host/contract/records-api.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { markdownOf } from '../../../host/records/conversation-file.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { realFolder } from '../../../host/setup/workspace-folder.ts'
import { atAsyncEnd, attempt } from '../../../kit/errors.ts'
import { count, visible } from '../../../kit/text.ts'
import { type Arguments, command } from '../../args/command.ts'
import { jsonFlag, limitOf20 } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { printList, printOne } from '../../print-list.ts'

const one = {
  conversation: { type: 'text', complete: 'conversations', about: 'Id or the beginning of one, name, or "last"' },
} as const satisfies Arguments
const file = { type: 'text', optional: true } as const

type Conversations = HostRecords['conversations'] & Pick<Host, 'resolveConversation'>

/** Opens the home for one command; a turn that a crash ended is closed first. */
async function withConversations<T>(context: CliContext, use: (conversations: Conversations, folder: string) => Promise<T>): Promise<T> {
  const setup = loadSetup(context)
  const host = await openHost(setup, { ahead: false })
  await using _end = atAsyncEnd(() => host.close())
  const { conversations } = await host.records()
  return await use({ ...conversations, resolveConversation: host.resolveConversation }, realFolder(setup.config.workspaceDir))
}

export const list = command({
  flags: { ...limitOf20, ...jsonFlag },
  args: {
    words: { type: 'text', optional: true, many: true, about: 'Only those with all these words in name, first words, folder or id' },
  },
  examples: [
    ['', 'latest first: name, age, folder, first words'],
    ['bicycle --json', 'those that match, for scripts'],
  ],
  exits: [9],
  run: (context, { limit, json = false }, { words }) =>
    withConversations(context, async ({ choices }) => {
      const items = choices({ words: words?.join(' ') ?? '', limit })
      const lines = items.map((each) => `${each.conversationId}  ${entryLine(each)}`)
      printList(context, { items, json, lines, none: words?.length ? 'no conversation matches' : 'no conversations yet' })
    }),
})

export const show = command({
  flags: jsonFlag,
  args: one,
  examples: [
    ['last', 'the latest, as Markdown'],
    ['"my bicycle" --json', 'one by its name, for scripts'],
  ],
  exits: [9],
  run: (context, { json = false }, { conversation }) =>
    withConversations(context, async (conversations) => {
      const found = conversations.export(conversations.resolveConversation(conversation))
      printOne(context, { json, value: found, text: markdownOf(found) })
    }),
})

export const rename = command({
  flags: jsonFlag,
  args: { ...one, name: { type: 'text', about: 'Its new name' } },
  examples: [['last "my bicycle"', 'braidclaw agent --resume "my bicycle" continues it']],
  exits: [9],
  run: (context, { json = false }, { conversation, name }) =>
    withConversations(context, async (conversations) => {
      const facts = conversations.rename(conversations.resolveConversation(conversation), name)
      printOne(context, { json, value: facts, text: `${facts.conversationId} is now: ${visible(facts.title)}\n` })
    }),
})

export const fork = command({
  flags: { turns: { type: 'whole', min: 1, about: 'Copy only the first so many turns (default: all that have ended)' }, ...jsonFlag },
  args: one,
  examples: [
    ['last', 'a copy, which -c continues here from now on; the original stays'],
    ['last --turns 3', 'as it was after its third turn'],
  ],
  details: () => `A copy has the messages and the summary, not the runs: receipts, costs and changes stay those of the original. A turn that
is under way in another process is not copied.`,
  exits: [9],
  run: (context, { turns, json = false }, { conversation }) =>
    withConversations(context, async (conversations) => {
      const facts = await conversations.fork(conversations.resolveConversation(conversation), { turns })
      printOne(context, { json, value: facts, text: `${facts.conversationId}  ${visible(facts.title)}\n` })
    }),
})

export const remove = command({
  flags: { yes: { type: 'boolean', about: 'Do not ask' }, ...jsonFlag },
  args: one,
  examples: [
    ['last', 'asks first'],
    ['conversation_4q2fqk8fd4spk980 --yes', 'for scripts; this cannot be undone'],
  ],
  details:
    () => `Deletes its texts, its runs and its place in the search. What stays: its receipts, which still verify, and one that says that
it was deleted; its cost; its kept changes ("braidclaw changes list"); lines in the files of agents; backups; and copies made by fork or export.`,
  exits: [3, 9],
  run: (context, { yes = false, json = false }, { conversation }) =>
    withConversations(context, async (conversations) => {
      const { conversationId: id, title, turns } = conversations.read(conversations.resolveConversation(conversation))
      const ask = yes || json ? undefined : terminalPrompt(context)
      if (!yes && !ask) throw usageError('nobody to ask whether it may be deleted for good; add --yes')
      const question = `Delete "${visible(title)}" (${count(turns, 'turn')}, ${id}) for good? [y/N] `
      if (!yes && !/^\s*y(es)?\s*$/i.test((await ask?.(question)) ?? '')) throw new CliExit(exitCodes.denied, 'nothing was deleted')
      const done = conversations.delete(id, 'session delete')
      const text = `deleted ${id} (${count(done.turns, 'message')}, ${count(done.runs, 'run')}); its receipts and kept changes stay\n`
      printOne(context, { json, value: done, text })
    }),
})

export const exportOne = command({
  flags: { force: { type: 'boolean', about: 'Replace FILE when it exists' }, ...jsonFlag },
  args: { ...one, file: { ...file, about: 'Where to write it: JSON for a name that ends in .json, else Markdown (default: stdout)' } },
  examples: [
    ['last talk.md', 'to read'],
    ['last talk.json', 'for "session import", here or in another home'],
  ],
  exits: [9],
  run: (context, { force = false, json = false }, { conversation, file: name }) =>
    withConversations(context, async (conversations) => {
      const found = conversations.export(conversations.resolveConversation(conversation))
      const path = resolve(context.cwd, name ?? '')
      const text = textOf(json ? '.json' : path, found)
      if (name === undefined) return context.process.stdout.data(text)
      if (!(await writeExport(path, text, async () => force))) throw commandError(`${visible(path)} exists; --force replaces it`)
      context.process.stderr.write(`written: ${visible(path)}\n`)
    }),
})

/** Limits the file, because no model could continue a longer conversation. */
const mostBytes = 32 * 1024 * 1024

export const importOne = command({
  flags: jsonFlag,
  args: { file: { ...file, about: 'What "session export --json" wrote (default: stdin)' } },
  examples: [['talk.json', 'a new conversation, which -c continues here']],
  details:
    () => `The file is checked whole before anything is written; existing conversations stay as they are. What it says counts as content of others
(reads_untrusted), for the rules that watch where data goes.`,
  exits: [9],
  async run(context, { json = false }, { file: name }) {
    if (name === undefined && stdinKind() !== 'data') throw usageError('nothing to import: name a file, or pipe one in')
    const text = name === undefined ? await readStdin({ patient: true, tell: tellOnStderr(context) }) : textIn(resolve(context.cwd, name))
    const value = attempt((): unknown => JSON.parse(text))
    if (value === undefined) throw usageError(`${visible(name ?? 'stdin')} is not JSON; pass what "session export --json" wrote`)
    await withConversations(context, async (conversations, folder) => {
      const facts = conversations.import(value, folder)
      printOne(context, { json, value: facts, text: `${facts.conversationId}  ${visible(facts.title)}\n` })
    })
  },
})

function textIn(path: string): string {
  const read = readConfigFile(path, mostBytes)
  if (read.state === 'text') return read.text
  throw usageError(`${visible(path)} ${read.state === 'missing' ? 'does not exist' : read.why}`)
}
