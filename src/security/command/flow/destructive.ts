/** Recognises commands that destroy data or stop the machine; they are blocked whatever the configuration lists. */

import type { CommandRule } from '../../rules.ts'
import { matchesPattern } from '../../targets/path.ts'
import { defaultForbidden } from '../names.ts'
import type { CommandPolicy } from '../verdict.ts'
import { type Arg, type Cwds, HOLE, literalArg, resolvePath } from './model.ts'

/** `cwd` is the workspace, `cwds` are the folders in which the command may start. */
type CommandFolders = Pick<CommandPolicy, 'cwd' | 'home'> & { readonly cwds?: Cwds }

/** @returns why this command must never run; `name` is the basename, `args` are the arguments after it */
export function destructive(name: string, args: readonly Arg[], around: CommandFolders): string | undefined {
  const words = args.flatMap((arg) => arg.texts)
  if (/^mkfs(\.|$)|^(mke2fs|mkswap|wipefs)$/.test(name)) return `${name} erases a disk`
  if (/^(shutdown|reboot|halt|poweroff|telinit)$/.test(name)) return `${name} stops the machine`
  if (name === 'init' && /^[06]$/.test(words[0] ?? '')) return 'init changes the run level of the machine'
  if (name === 'systemctl' && words.some((word) => /^(reboot|poweroff|halt|kexec|rescue|emergency|suspend|hibernate)$/.test(word)))
    return 'systemctl stops the machine'
  if (name === 'dd' && words.some((word) => /^(if=|of=\/dev\/)/.test(word))) return 'dd copies raw data over whatever is there'
  if (name === 'rm') return removes(args, around)
  if (name === 'chmod' && isRecursive(words) && words.some((word) => /^(0?777|a\+?=?rwx|\+rwx|ugo[+=]rwx|\/)$/.test(word)))
    return 'chmod -R 777 opens everything to everyone'
  if (name === 'chown' && isRecursive(words)) return 'chown -R gives everything away'
  return undefined
}

function isRecursive(words: readonly string[]): boolean {
  return words.some((word) => /^-[a-zA-Z]*[rR]|^--rec/.test(word))
}

/** Matches a recursive removal of everything. */
function removes(args: readonly Arg[], around: CommandFolders): string | undefined {
  if (!args.some(({ texts }) => texts.some((text) => /^-[a-zA-Z]*[rR]|^--r/.test(text)))) return
  const all = everythingIn(args, around)
  return all && `rm -r ${all} removes everything; name what is to go; the tool file_delete deletes one file or folder`
}

/**
 * @returns the first that means the root, a folder in it, the home folder, the workspace, the current folder, one above it, or all in one
 */
export function everythingIn(args: readonly Arg[], around: CommandFolders): string | undefined {
  const texts = args.flatMap(({ texts: all, kind, led, word }) => [
    ...all.filter((text) => !/^-(?!-no-p)/.test(text) && (!text.includes(HOLE) || (kind !== 'number' && !led))),
    ...(word?.text.startsWith('~') ? [word.text.replace(/^~[^/]*/, around.home)] : []),
  ])
  return texts.find((text) => isEverything(text, around))?.replaceAll(HOLE, '…')
}

/** `"$X"/*` means the root when the variable is empty; otherwise nothing is known of an unknown part. */
function isEverything(text: string, { cwds, cwd: workspace, home }: CommandFolders): boolean {
  const known = text.replaceAll(HOLE, '').replace(/^~(?=\/|$)/, home)
  const names = known.split('/')
  // The empty name after a slash, or a pattern without a letter of its own.
  while (/^(?:(?=.*\*)(?:[.*?]|\[[^\]]*\])*|)$/.test(names.at(-1) ?? '-')) names.pop()
  if (text.includes(HOLE)) return names.length === 0 && known.startsWith('/')
  if (known === '' || known === '--no-preserve-root' || names.every((name) => /^\.{0,2}$/.test(name))) return known !== ''
  const holds = (found: readonly string[], folder: readonly string[]) =>
    found.length <= folder.length && found.every((name, at) => matchesPattern(name, folder[at] ?? ''))
  const places = (cwds ?? [workspace]).map((cwd) => resolvePath(names.join('/'), cwd).split('/'))
  return places.some((place) => place.length < 3 || holds(place, home.split('/')) || holds(place, workspace.split('/')))
}

/** Searches text that cannot be followed word by word for a removal of everything. */
export function removalIn(text: string, around: CommandFolders): string | undefined {
  const known = text.replace(/\$(?:HOME\b|\{HOME\})/g, around.home).replace(/\$(?:PWD\b|\{PWD\})/g, around.cwd)
  const found = known.matchAll(/(?<![\w.-])rm(?=[\s"',])([^;|&\n`]*)/g)
  const args = [...found].map(([, words = '']) => words.split(/[\s"',()[\]]+/).map((word) => literalArg(word)))
  return args.map((words) => removes(words, around)).find((reason) => reason !== undefined)
}

export function isForbidden(name: string, forbidden: readonly string[]): boolean {
  return forbidden.includes(name) || (name.startsWith('mkfs.') && forbidden.includes('mkfs'))
}

type Forbidding = { readonly forbidden: readonly string[] }

/** The names to search for in text that cannot be followed word by word. */
export function namesToBlock({ forbidden }: Forbidding): readonly string[] {
  return [...new Set([...forbidden, ...defaultForbidden])]
}

export function blockingRule(name: string, { forbidden }: Forbidding): CommandRule {
  return isForbidden(name, forbidden) ? 'command.forbidden' : 'command.destructive'
}
