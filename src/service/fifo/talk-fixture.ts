/** Simulates pipes in memory and a bridge at their other end, for tests of `createDuplex`. */

import { createDuplex } from './duplex.ts'
import type { Pipe } from './open-pipe.ts'

/** Simulates a kernel pipe in memory: of bounded size, with atomic writes up to 4,096 bytes. */
export function createPipe(size = 65_536) {
  let held = Buffer.alloc(0)
  const take = (most: number): Uint8Array => {
    const taken = Buffer.from(held.subarray(0, most))
    held = held.subarray(most)
    return taken
  }
  const pipe: Pipe = {
    read: () => take(4096),
    write(bytes) {
      const room = size - held.length
      const count = bytes.length <= room || bytes.length > 4096 ? Math.min(bytes.length, room) : 0
      held = Buffer.concat([held, bytes.subarray(0, count)])
      return count
    },
    abandoned: () => true,
    close: () => {},
  }
  return { ...pipe, take, text: () => held.toString() }
}

export function createTalkStage({ writing = false } = {}) {
  const [request, answer] = [createPipe(), createPipe()]
  // Whether a process has the answer FIFO open for writing.
  const heard = { ...answer, abandoned: () => !writing }
  return { request, answer, talk: createDuplex([request, heard], 1000) }
}

/** Simulates a bridge that reads everything available until the whole question has come. */
export function sendWhole(talkStage: ReturnType<typeof createTalkStage>, question: string) {
  const asking = talkStage.talk.ask(question, 1e9)
  let taken = ''
  for (let turn = 0; turn < 10; turn += 1) {
    asking.look()
    taken += Buffer.from(talkStage.request.take(1e6)).toString()
  }
  return { asking, taken }
}

export const say = (text: string): Uint8Array => Buffer.from(text)
