/** Recognises commands that destroy data or stop the machine; they are blocked whatever the configuration lists. */

import type { CommandRule } from '../command-rules.ts'
import { defaultForbidden } from '../names.ts'
import type { Arg } from './model.ts'

/** @returns why this command must never run; `name` is the basename, `args` are the arguments after it */
export function destructive(name: string, args: readonly Arg[]): string | undefined {
  const words = args.flatMap((arg) => arg.texts)
  if (/^mkfs(\.|$)|^(mke2fs|mkswap|wipefs)$/.test(name)) return `${name} erases a disk`
  if (/^(shutdown|reboot|halt|poweroff|telinit)$/.test(name)) return `${name} stops the machine`
  if (name === 'init' && /^[06]$/.test(words[0] ?? '')) return 'init changes the run level of the machine'
  if (name === 'systemctl' && words.some((word) => /^(reboot|poweroff|halt|kexec|rescue|emergency|suspend|hibernate)$/.test(word)))
    return 'systemctl stops the machine'
  if (name === 'dd' && words.some((word) => /^(if=|of=\/dev\/)/.test(word))) return 'dd copies raw data over whatever is there'
  if (name === 'rm') return removes(words)
  if (name === 'chmod' && isRecursive(words) && words.some((word) => /^(0?777|a\+?=?rwx|\+rwx|ugo[+=]rwx|\/)$/.test(word)))
    return 'chmod -R 777 opens everything to everyone'
  if (name === 'chown' && isRecursive(words)) return 'chown -R gives everything away'
  return undefined
}

function isRecursive(words: readonly string[]): boolean {
  return words.some((word) => /^-[a-zA-Z]*[rR]|^--rec/.test(word))
}

/** Matches a recursive removal of everything: the root, the home, the current or parent folder, or a bare pattern. */
function removes(words: readonly string[]): string | undefined {
  const everything = words.find((word) =>
    /^(\/|\/\*|~|~\/\*?|\.\/?|\.\.\/?|(\.{0,2}\/)*\*|\.\*|\/[a-z]+\/?\*?|--no-preserve-root)$/.test(word),
  )
  return isRecursive(words) && everything !== undefined ? `rm -r ${everything} removes everything` : undefined
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
