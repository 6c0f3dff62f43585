/** Recognises commands that destroy data or stop the machine; they are blocked whatever the configuration lists. */

import type { CommandRule } from '../command-rules.ts'
import { matchesPattern } from '../command-text.ts'
import { defaultForbidden } from '../names.ts'
import { type Arg, type Cwds, HOLE, type Look, literalArg, type Place, resolvePath } from './model.ts'

/** Where a command runs: the folders in which it may start, the workspace, and the user's home folder. */
type Around = { readonly cwds: Cwds; readonly workspace: string; readonly home: string }

export function aroundOf({ policy }: Pick<Look, 'policy'>, { cwds }: Pick<Place, 'cwds'>): Around {
  return { cwds, workspace: policy.cwd, home: policy.home }
}

/** @returns why this command must never run; `name` is the basename, `args` are the arguments after it */
export function destructive(name: string, args: readonly Arg[], around: Around): string | undefined {
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

/** Matches a recursive removal of everything, which the tool for single files never needs. */
function removes(args: readonly Arg[], around: Around): string | undefined {
  if (!args.some(({ texts }) => texts.some((text) => /^-[a-zA-Z]*[rR]|^--r/.test(text)))) return
  const everything = everythingIn(args, around)
  return everything === undefined
    ? undefined
    : `rm -r ${everything} removes everything; name what is to go; the tool file_delete deletes one file or folder`
}

/**
 * @returns the first operand that means the root or a folder in it, the home folder, the workspace, the current folder or one above it, or
 * all that is in one of these
 */
export function everythingIn(args: readonly Arg[], around: Around): string | undefined {
  for (const { texts, kind, led } of args) {
    const found = texts.find((text) => isEverything(text, around) || (kind !== 'number' && !led && mayBeRoot(text)))
    if (found !== undefined) return found.replaceAll(HOLE, '…')
  }
}

function isEverything(text: string, { cwds, workspace, home }: Around): boolean {
  if (text === '--no-preserve-root') return true
  if (text === '' || text.includes(HOLE)) return false
  const names = text.replace(/^~(?=\/|$)/, home).split('/')
  while (isBare(names.at(-1))) names.pop()
  if (names.every((name) => /^\.{0,2}$/.test(name))) return true
  return (cwds ?? [workspace]).some((cwd) => {
    const found = resolvePath(names.join('/'), cwd).split('/').slice(1)
    const holds = (folder: string) => {
      const parts = folder.split('/').slice(1)
      return found.length <= parts.length && found.every((name, at) => name === parts[at] || matchesPattern(name, parts[at] ?? ''))
    }
    return found.length < 2 || holds(home) || holds(workspace)
  })
}

/** The empty name after a slash, or a pattern without a letter of its own. */
function isBare(name: string | undefined): boolean {
  return name === '' || (name !== undefined && /\*/.test(name) && /^(?:[.*?]|\[[^\]]*\])*$/.test(name))
}

/** `"$X"/*` means the root when the variable is empty. */
function mayBeRoot(text: string): boolean {
  const known = text.replaceAll(HOLE, '')
  return known !== text && known.startsWith('/') && known.split('/').every(isBare)
}

/** Searches text that cannot be followed word by word. @returns why it must not run */
export function removalIn(text: string, around: Around): string | undefined {
  for (const [, words = ''] of text.matchAll(/(?<![\w.-])rm(?=[\s"',])([^;|&\n`]*)/g)) {
    const args = words
      .split(/[\s"',()[\]]+/)
      .filter(Boolean)
      .map((word) => literalArg(word.replace(/^\$(?:HOME\b|\{HOME\})/, around.home).replace(/^\$(?:PWD\b|\{PWD\})/, around.workspace)))
    const reason = removes(args, around)
    if (reason !== undefined) return reason
  }
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
