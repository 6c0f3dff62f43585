/** Finds in some files of a project what a rule forbids. */

import { basename, dirname, join } from 'node:path'
import { memo } from '../../kit/lazy.ts'
import { count, quote } from '../../kit/text.ts'
import type { Channel, Project } from './project.ts'

/** `says` completes "path:line "; `about` tells it from others at this path; it became worse when a greater `amount` is found. */
export type Found = {
  readonly path: string
  readonly line?: number
  readonly says: string
  readonly about?: string
  readonly amount?: number
}

/** Tells whether a file did not have this import before. */
export type IsNew = (from: string, target: string) => boolean

export type Find = (project: Project, files: readonly string[], isNew: IsNew) => readonly Found[]

type Test = (path: string) => boolean

type Forbidden = { readonly says: string; readonly types: boolean; forbids(from: string, target: string): boolean }

/** Finds a file whose imports cannot be read, too. */
export function findImports({ says, types, forbids }: Forbidden): Find {
  return (project, files) =>
    files.flatMap((path): readonly Found[] => {
      const { channels = [], problem } = project.facts(path) ?? {}
      if (problem !== undefined) return [{ path, says: problem }]
      const found = channels.filter(({ target, typeOnly }) => (types || !typeOnly) && forbids(path, target))
      return found.map((one) => ({ path, line: one.line, says: `imports ${importText(one)}, but ${says}`, about: one.target }))
    })
}

function importText({ specifier, target }: Channel): string {
  if (specifier === '') return 'a name that is known only at run time'
  return target.startsWith('package:') ? quote(specifier) : `${quote(specifier)} (${target})`
}

export function findLong(most: number): Find {
  return (project, files) => {
    const counted = files.map((path) => ({ path, amount: project.facts(path)?.lines ?? 0 }))
    return counted.flatMap((one) => (one.amount > most ? { ...one, says: `has ${count(one.amount, 'line')}, at most ${most}` } : []))
  }
}

export function findCrowded(most: number, isAbout: Test): Find {
  return (project, files) =>
    [...new Set(files.map((path) => dirname(path)))].flatMap((path) => {
      const inside = (project.names(path === '.' ? '' : path) ?? []).map((name) => join(path, name))
      const amount = inside.filter((one) => isAbout(one) && project.kind(one) === 'file').length
      return amount > most ? { path, amount, says: `has ${count(amount, 'file')}, at most ${most}` } : []
    })
}

/** Finds files without any of these names beside them. Those that stand beside others need none themselves. */
export function findAlone(names: readonly string[]): Find {
  const tests = names.map((name) => new Bun.Glob(`**/${name.replaceAll('{name}', '*')}`))
  return (project, files) =>
    files.flatMap((path) => {
      const own = basename(path).replace(/(?<=.)\.[^.]*$/, '')
      const wanted = names.map((name) => join(dirname(path), name.replaceAll('{name}', own)))
      const isFine = project.kind(path) !== 'file' || tests.some((test) => test.match(path)) || wanted.some((one) => project.kind(one))
      return isFine ? [] : { path, says: `has no ${wanted.map(quote).join(' or ')} beside it` }
    })
}

/** Finds one cycle for each group of files that import each other and hold a new import. */
export function findCycles(isAbout: Test, types: boolean): Find {
  return (project, files, isNew) => {
    const next = memo((path) => {
      const own = project.facts(path)?.channels.filter(({ target, typeOnly }) => (types || !typeOnly) && isAbout(target)) ?? []
      return own.filter(({ target }) => project.kind(target) === 'file')
    })
    const starts = files.filter((path) => next(path).some(({ target }) => isNew(path, target)))
    const groups = groupsOf(starts, (path) => next(path).map(({ target }) => target))
    const seen = new Set<number | undefined>()
    return starts.flatMap((path) => {
      const group = groups.get(path)
      const channel = next(path).find(({ target }) => groups.get(target) === group && isNew(path, target))
      if (channel === undefined || seen.has(group)) return []
      seen.add(group)
      const back = shortest(channel.target, path, (at) => next(at).flatMap(({ target }) => (groups.get(target) === group ? target : [])))
      const shown = back.length > 12 ? [...back.slice(0, 6), `… ${back.length - 11} more …`, ...back.slice(-5)] : back
      return { path, line: channel.line, says: `closes a cycle of imports: ${[path, ...shown].join(' → ')}` }
    })
  }
}

/** Numbers the files: two have the same number when each reaches the other (Tarjan's algorithm, without recursion). */
function groupsOf(starts: readonly string[], next: (path: string) => readonly string[]): ReadonlyMap<string, number> {
  const [low, groups, open] = [new Map<string, number>(), new Map<string, number>(), [] as string[]]
  const trail: { readonly path: string; readonly number: number; readonly rest: Iterator<string> }[] = []
  const visit = (path: string) => {
    if (low.has(path)) return
    trail.push({ path, number: low.size, rest: next(path)[Symbol.iterator]() })
    low.set(path, low.size)
    open.push(path)
  }
  const lower = (path: string | undefined, other: string) => {
    if (path !== undefined && !groups.has(other)) low.set(path, Math.min(low.get(path) ?? 0, low.get(other) ?? 0))
  }
  for (const start of starts) {
    visit(start)
    for (let top = trail.at(-1); top !== undefined; top = trail.at(-1)) {
      const { done, value } = top.rest.next()
      if (!done) {
        visit(value)
        lower(top.path, value)
        continue
      }
      trail.pop()
      lower(trail.at(-1)?.path, top.path)
      if (low.get(top.path) === top.number) for (const path of open.splice(open.lastIndexOf(top.path))) groups.set(path, top.number)
    }
  }
  return groups
}

/** Returns the files on a shortest way. */
function shortest(from: string, to: string, next: (path: string) => readonly string[]): readonly string[] {
  const cameFrom = new Map<string, string | undefined>([[from, undefined]])
  for (const at of cameFrom.keys()) for (const target of next(at)) if (!cameFrom.has(target)) cameFrom.set(target, at)
  const steps: string[] = []
  for (let at: string | undefined = to; at !== undefined; at = cameFrom.get(at)) steps.unshift(at)
  return steps
}
