/** Forbids import cycles, type and lazy imports included: a module is below every module that imports it. */

import type { Law, Module } from './module.ts'

/** Reports one violation per group of files in a cycle, with the cycle's path. */
export const noImportCycle: Law = (modules) => {
  const byPath = new Map(modules.map((module) => [module.path, module]))
  const done = new Set<string>()
  return aboveCycles(modules).flatMap((module) => {
    const cycle = done.has(module.path) ? undefined : cycleFrom(module, byPath)
    if (cycle === undefined) return []
    for (const path of cycle) done.add(path)
    const line = module.imports.find((one) => one.target === cycle[1])?.line ?? 1
    return [{ file: module.path, line, message: `import cycle: ${cycle.join(' → ')}` }]
  })
}

/** Returns the modules that are in a cycle or import one that is: takes away, again and again, what imports nothing of the rest. */
function aboveCycles(modules: readonly Module[]): readonly Module[] {
  const paths = new Set(modules.map(({ path }) => path))
  const rest = modules.filter((module) => module.imports.some(({ target }) => target !== undefined && paths.has(target)))
  return rest.length === modules.length ? rest : aboveCycles(rest)
}

/** Returns the shortest path from a module back to itself. */
function cycleFrom(start: Module, byPath: ReadonlyMap<string, Module>): string[] | undefined {
  const cameFrom = new Map<string, string>()
  const queue = [start.path]
  for (let at = queue.shift(); at !== undefined; at = queue.shift()) {
    for (const { target } of byPath.get(at)?.imports ?? []) {
      if (target === start.path) return [...pathBack(at, start.path, cameFrom), start.path]
      if (target === undefined || cameFrom.has(target)) continue
      cameFrom.set(target, at)
      queue.push(target)
    }
  }
  return undefined
}

function pathBack(from: string, start: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const steps = [from]
  for (let at = from; at !== start; ) {
    at = cameFrom.get(at) ?? start
    steps.unshift(at)
  }
  return steps
}
