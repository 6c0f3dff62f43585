/** Reads `ln -s TARGET LINK`: the target is meant from the folder of the link, not from the working directory. */

import { type Arg, literalArg, sure } from '../flow/model.ts'

/** @returns the arguments of ln, with the target of a symbolic link as a path from the working directory */
export function linkOperands(args: readonly Arg[]): readonly Arg[] {
  const [target, link, ...more] = args.filter((arg) => !sure(arg)?.startsWith('-'))
  const [text, place] = [target && sure(target), link && sure(link)]
  const isSymbolic = args.some((arg) => /^(?:-[a-zA-Z]*s[a-zA-Z]*|--symbolic)$/.test(sure(arg) ?? ''))
  const plain = args.every(
    (arg) => !/^-/.test(sure(arg) ?? '') || /^(?:-[sfnTv]+|--symbolic|--force|--no-dereference)$/.test(sure(arg) ?? ''),
  )
  if (!isSymbolic || !plain || more.length > 0 || text === undefined || place === undefined || /^[/~]/.test(text)) return args
  const folder = place.slice(0, place.lastIndexOf('/') + 1)
  return args.map((arg) => (arg === target ? literalArg(folder + text) : arg))
}
