/** Turns a line such as `/deploy staging` into the turn that a command file or a skill describes. */

import { basename } from 'node:path'
import { createTrust } from '../../../../config/trust.ts'
import { loadFrontMatter, textOf, wordsOf } from '../../../../discovery/skill-files.ts'
import { findFiles, openTextFiles, type TextFiles } from '../../../../discovery/text-files.ts'
import { didYouMean, flat, quote, visible, visibleLines } from '../../../../kit/text.ts'
import type { Setup, SlashCommand, SlashCommands, SlashTurn } from '../../../api.ts'
import { FailureError } from '../../../failure.ts'
import { openProjectFiles } from '../../../setup/project-files.ts'
import type { OfferedSkills } from './offered-skills.ts'

/** The commands of the terminal and the channels; no file takes the place of one. */
export const reservedNames: readonly string[] =
  'help exit quit continue tools memory policy changes diff status jobs sop wiggum undo model clear mcp start stop new schedules resume rename fork export context compact cost auto effort'.split(
    ' ',
  )

type TurnCommand = SlashCommand & { readonly turn: (args: string) => SlashTurn }
type CommandFolder = Readonly<Record<'root' | 'path', string>> & { readonly files: TextFiles; readonly within?: string }
type SplitText = Awaited<ReturnType<typeof loadFrontMatter>>
type CommandPlaces = { readonly workspace: string; readonly skills: OfferedSkills | undefined }

const maxBytes = 65_536

/** Reads the files once: the person's own come first, then those of a trusted project, then its skills. `workspace` is a real path. */
export async function openSlashCommands(setup: Setup, { workspace, skills }: CommandPlaces): Promise<SlashCommands> {
  const split = await loadFrontMatter()
  const { home, trustedFolders } = setup.paths
  const trusted = createTrust(trustedFolders).isTrusted(setup.config.copyOf ?? workspace)
  const own = { files: openTextFiles(`${home}/commands`), root: `${home}/commands`, path: '' }
  const project = { files: openProjectFiles(setup, workspace), root: workspace, path: '.claude/commands/', within: workspace }
  const fromFiles = (trusted ? [own, project] : [own]).flatMap((folder) => commandsIn(setup, folder, split))
  const fromSkills = (skills?.list ?? []).map((found): TurnCommand => {
    const { name, description, location: source, allowedTools } = found.skill
    const promptFor = (args: string) => `Work by this skill.\n\n${filled(skills?.textOf(found) ?? '', args, /\$(ARGUMENTS)\b/g)}`
    return { name, usage: name, description, source, turn: (args) => ({ prompt: promptFor(args), allowedTools }) }
  })
  const commands = new Map<string, TurnCommand>()
  for (const command of [...fromFiles, ...fromSkills]) {
    const why = whyNot(command.name, commands.get(command.name))
    if (why === undefined) commands.set(command.name, command)
    else setup.log('warn', visible(`${command.source} is not a command: ${why}`))
  }
  const lines = [...commands.keys()].map((name) => `/${name}`)

  return {
    list: [...commands.values()].map(({ turn: _, ...command }) => command),
    turnOf(line) {
      const [, name = '', args = ''] = /^\/([\w:-]+)(?:\s+([\s\S]*))?$/.exec(line.trim()) ?? []
      if (name === '' || reservedNames.includes(name)) return undefined
      const [found, near] = [commands.get(name), didYouMean(`/${name}`, lines)]
      if (found !== undefined || near === '') return found?.turn(args.trim())
      throw new FailureError('usage', `no command ${quote(`/${name}`)}${near} A message that begins with "/" can begin with a space`)
    },
  }
}

function whyNot(name: string, other: TurnCommand | undefined): string | undefined {
  if (!/^\w[\w:-]{0,63}$/.test(name)) return `${quote(name)} is not made of letters, digits, "-" and "_"; rename the file`
  if (reservedNames.includes(name)) return `/${name} is a command of BraidClaw; rename the file`
  return other && `${other.source} has the same name`
}

function commandsIn(setup: Setup, { files, root, path, within }: CommandFolder, split: SplitText): readonly TurnCommand[] {
  const { found, notices } = findFiles(`${root}/${path}`, { ending: '.md', within })
  for (const notice of notices) setup.log('warn', visible(notice))
  return found.flatMap((file) => {
    const read = files.readText(path + file, { maxBytes })
    const source = `${root}/${path}${file}`
    const why = !read.ok ? read.message : read.more ? `it has ${read.size} bytes; ${maxBytes} are the limit` : undefined
    if (why !== undefined) setup.log('warn', visible(`${source} is not a command: ${why}`))
    return read.ok && !read.more ? [commandOf(source, split(setup.redactor.text(visibleLines(read.text))))] : []
  })
}

/** A file in a folder has the name of the file alone, as in Claude Code. */
function commandOf(source: string, { fields = {}, body }: ReturnType<SplitText>): TurnCommand {
  const name = basename(source, '.md')
  const hint = textOf(fields['argument-hint']) ?? ''
  const description = textOf(fields.description) ?? body.trim().split('\n')[0] ?? ''
  const allowedTools = wordsOf(fields['allowed-tools'])
  const turn = (args: string) => ({ prompt: filled(body.trim(), args), allowedTools })
  return { name, usage: flat(`${name} ${hint}`).trim(), description: flat(description), source, turn }
}

/** Puts the arguments in the places that the text names, or below it where it names none. A skill may show scripts, which have a $1 of their own. */
function filled(text: string, args: string, places = /\$(ARGUMENTS|[1-9])(?!\w)/g): string {
  const words = (args.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map((word) => word.replace(/^(["'])(.*)\1$/s, '$2'))
  let isPlaced = false
  const whole = text.replace(places, (_, place: string) => {
    isPlaced = true
    return place === 'ARGUMENTS' ? args : (words[Number(place) - 1] ?? '')
  })
  return isPlaced || args === '' ? whole : `${whole}\n\nArguments: ${args}`
}
