/** Makes the commands that plugins and skills share: they show, approve, install, update and remove folders of other people. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { AskPerson } from '../../../channels/terminal/approval-prompt.ts'
import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { coloured, wantsColor } from '../../../channels/terminal/printer.ts'
import { differenceLines } from '../../../channels/terminal/slash/past-changes.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import { questionFold } from '../../../host/changes/change-lines.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { fetchFolder, isRemote } from '../../../host/toolset/guests/folders/fetch-folder.ts'
import { differenceOf, type FolderBook, type GuestFolder, type SoundFolder } from '../../../host/toolset/guests/folders/folder-book.ts'
import { atEnd } from '../../../kit/errors.ts'
import { cut, flat, visible } from '../../../kit/text.ts'
import type { ChangeSet } from '../../../runtime/changes.ts'
import { type Arguments, command, type Flags, type HomeNames } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes } from '../../exit.ts'

type Named = { readonly name: string }

/** `sample` is a name for the examples, `sources` what can be installed. */
type FolderCommands<Content extends Named, Book extends FolderBook<Content>> = {
  readonly noun: 'plugin' | 'skill'
  readonly names: HomeNames
  readonly sample: string
  readonly sources: string
  open(context: CliContext): Book | Promise<Book>
  /** Returns what the book calls a folder that the user named. */
  nameIn?(book: Book, name: string, context: CliContext): string | Promise<string>
  /** Returns lines that say what the folder may do. */
  describe(folder: SoundFolder<Content>, book: Book): readonly string[]
  facts(folder: GuestFolder<Content>, book: Book): object
  /** Returns what else a person should know of it. */
  notice?(folder: SoundFolder<Content>): string | undefined
}

export const yesFlag = { yes: { type: 'boolean', about: 'Approve it without a question' } } as const satisfies Flags
const flags = { ...yesFlag, ...jsonFlag }

/** Puts a text of somebody else on one line. */
export function line(text: string): string {
  return cut(visible(flat(text).trim()), 200)
}

export function printDifference({ process: { stdout, env } }: CliContext, set: ChangeSet | undefined): void {
  if (set === undefined || set.changes.length === 0) return
  stdout.write('changed since it was approved:\n')
  stdout.write(coloured(differenceLines(set, questionFold), isTerminal(1) && wantsColor(env)))
}

/** Asks the person at the terminal. @returns undefined when nobody can be asked */
export async function confirmed(ask: AskPerson | undefined, question: string): Promise<boolean | undefined> {
  return ask && /^y(es)?$/i.test((await ask(question))?.trim() ?? '')
}

type ApprovalFlags = { readonly yes?: boolean; readonly json?: boolean }
type Copying = ApprovalFlags & { readonly from: string; readonly replace?: string | undefined }

function createApproval<C extends Named, B extends FolderBook<C>>(kind: FolderCommands<C, B>) {
  type Shown = { readonly book: B; readonly folder: SoundFolder<C> }

  /** Prints what the folder may do, and what changed since it was approved. */
  function print(context: CliContext, { book, folder }: Shown): void {
    for (const each of kind.describe(folder, book)) context.process.stdout.write(`${each}\n`)
    printDifference(context, differenceOf(book, folder))
  }

  /** Shows what the folder may do, and asks. @returns false when nobody can be asked. @throws CliExit after a no */
  async function approved(context: CliContext, { book, folder, yes, json = false }: Shown & ApprovalFlags): Promise<boolean> {
    const { stdout } = context.process
    if (json) stdout.write(`${JSON.stringify(kind.facts(folder, book))}\n`)
    else print(context, { book, folder })
    const name = visible(folder.name)
    const answer = yes || (json ? undefined : await confirmed(terminalPrompt(context), `Approve exactly these files of ${name}? [y/N] `))
    if (answer === undefined) return false
    if (!answer) throw new CliExit(exitCodes.denied, `error: ${name} was not approved`)
    await book.approve(folder.name, folder.files.digest)
    if (!json) stdout.write(`approved: ${name}\n`)
    return true
  }

  async function installed(context: CliContext, book: B, { from, replace }: Copying): Promise<string> {
    if (!isRemote(from)) return await book.install(from, from, replace)
    const place = mkdtempSync(join(tmpdir(), `braidclaw-${kind.noun}-`))
    using _end = atEnd(() => rmSync(place, { recursive: true, force: true }))
    return await book.install(await fetchFolder(loadSetup(context), from, join(place, kind.noun)), from, replace)
  }

  /** Copies a folder into the home, in place of the one of the name `replace`, and asks whether it may be used. */
  async function copied(context: CliContext, { from, replace, ...given }: Copying): Promise<void> {
    const { stdout, stderr } = context.process
    const book = await kind.open(context)
    const folder = book.sound(await installed(context, book, { from, replace }))
    if (!given.json) stdout.write(`installed: ${folder.folder}\n`)
    if (folder.state === 'approved' && !given.json) stdout.write('it is approved already, with exactly these files\n')
    else if (!(await approved(context, { book, folder, ...given }))) {
      const state = kind.noun === 'skill' ? 'is not used' : 'does not run'
      stderr.write(`it ${state} yet; approve it with: braidclaw ${kind.noun} approve ${folder.name}\n`)
    }
  }

  async function open(context: CliContext, named: string) {
    const book = await kind.open(context)
    return { book, name: (await kind.nameIn?.(book, named, context)) ?? named }
  }

  return { open, print, approved, copied }
}

export function folderCommands<C extends Named, B extends FolderBook<C>>(kind: FolderCommands<C, B>) {
  const { noun, sample, sources } = kind
  const { open, print, approved, copied } = createApproval(kind)
  const args = { name: { type: 'text', about: `The name of the ${noun}`, complete: kind.names } } as const satisfies Arguments
  /** Makes a command that changes what is kept of one folder. */
  const change = (does: string, work: (book: B, name: string) => Promise<unknown>, done: string) =>
    command({
      args,
      examples: [[sample, does]],
      async run(context, _flags, { name: named }) {
        const { book, name } = await open(context, named)
        await work(book, name)
        context.process.stdout.write(`${done}: ${visible(named)}\n`)
      },
    })

  return {
    show: command({
      flags: jsonFlag,
      args,
      examples: [[sample, 'what it may do, and what changed since it was approved']],
      async run(context, { json = false }, { name: named }) {
        const { book, name } = await open(context, named)
        if (json) return void context.process.stdout.write(`${JSON.stringify(kind.facts(book.find(name), book))}\n`)
        const folder = book.sound(name)
        print(context, { book, folder })
        const notice = kind.notice?.(folder)
        if (notice !== undefined) context.process.stdout.write(`${notice}\n`)
      },
    }),
    approve: command({
      ...{ flags, args, exits: [4] },
      examples: [
        [sample, 'shows what it may do and what changed, and asks'],
        [`${sample} --yes`, 'approves the files that are there now'],
      ],
      async run(context, given, { name: named }) {
        const { book, name } = await open(context, named)
        if (await approved(context, { book, folder: book.sound(name), ...given })) return
        const how = `braidclaw ${noun} approve ${visible(named)} --yes`
        throw new CliExit(exitCodes.approval_needed, `error: nobody can be asked here; approve it with: ${how}`)
      },
    }),
    install: command({
      ...{ flags, args: { source: { type: 'text', about: sources } }, exits: [3] },
      examples: [
        [`./${sample}`, 'copies the folder, shows what it may do, and asks'],
        [`./${sample} --yes`, 'approves it, too'],
        [`git+https://example.org/${sample}.git#v1.0`, 'one commit of a repository'],
        [`npm:${sample}@1.0.0`, 'a package, without its scripts'],
      ],
      run: (context, given, { source: from }) => copied(context, { ...given, from: isRemote(from) ? from : resolve(context.cwd, from) }),
    }),
    update: command({
      ...{ flags, args, exits: [3] },
      examples: [[sample, 'fetches it again from where it came, shows what changed, and asks']],
      async run(context, given, { name: named }) {
        const { book, name } = await open(context, named)
        const { entry } = book.find(name)
        if (entry?.source !== undefined) return copied(context, { ...given, from: entry.source, replace: name })
        throw commandError(`${visible(named)} was not installed by a command; change its files, then approve it`)
      },
    }),
    remove: change('deletes its folder and forgets the approval', (book, name) => book.remove(name), 'removed'),
    enable: change('it is used again', (book, name) => book.enable(name, true), 'enabled'),
    disable: change('it is not used any more', (book, name) => book.enable(name, false), 'disabled'),
  }
}
