import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createEngine } from '../../kernel/engine.ts'
import { divergence, replay } from '../../kernel/replay-steps.ts'
import type { RunEvent } from '../event.ts'
import { program } from '../program.ts'
import { defaultBounds, scenesOf } from './scenes.ts'
import { findReplayMismatch, likely } from './search.ts'
import { createWorld, memory } from './world.ts'

const scenes = scenesOf([], defaultBounds)

test('whatever a hostile world sends, and in whatever order, the accepted events alone give the same run again', () => {
  const choices = fc.array(fc.nat(10_000), { maxLength: 60 })
  fc.assert(
    fc.property(fc.constantFrom(...scenes), choices, (scene, rolls) => {
      const threads = program(scene.limits)
      const world = createWorld(scene)
      const journal: RunEvent[] = []
      const engine = createEngine<RunEvent>({ threads, onExternal: (event) => journal.push(event) })
      const selected = [...engine.superstep().selected]
      for (const roll of rolls) {
        const offers = likely(world(selected.reduce(memory.next, memory.init)), roll % 11)
        const offer = offers[roll % offers.length]
        if (offer) engine.send(offer)
        selected.push(...engine.superstep().selected)
      }
      expect(divergence(selected, replay({ threads, externals: journal }).selected)).toBeUndefined()
      expect(journal).toEqual(selected.filter(({ source }) => source === 'external').map(({ event }) => event))
    }),
    { numRuns: 300 },
  )
})

test('a walk is the same walk every time, and one that cannot be repeated is handed back', () => {
  const [scene] = scenes
  if (scene === undefined) throw new Error('no scene')
  const walking = { world: createWorld(scene), walks: 20, steps: 30 }
  expect(findReplayMismatch({ ...walking, threads: program(scene.limits) })).toBeUndefined()
  const times = { seen: 0 }
  const forgetful = {
    name: 'forgetful',
    priority: 1,
    init: 0,
    bid: () => ({ wait: [{ type: 'think' as const }], block: ++times.seen % 7 === 0 ? [{ type: 'act' as const }] : [] }),
    next: (state: number) => state + 1,
  }
  const found = findReplayMismatch({ ...walking, threads: [...program(scene.limits), forgetful] })
  expect(found?.length).toBeGreaterThan(1)
})
