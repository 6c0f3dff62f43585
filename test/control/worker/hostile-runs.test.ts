/** Task texts that are shell, flags and terminal codes, and runners that lie about their tokens or flood their log. */

import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { escapeHidden } from '../../../src/kit/escape.ts'
import { needs } from '../../support/needs.ts'
import { planeAndPlaceOfEachTest, result } from './plane-and-place.ts'
import type { TestPlane } from './plane-port.ts'

const given = planeAndPlaceOfEachTest()

describe.if(needs('bwrap'))('a worker', () => {
  test.each(['--help', '$(touch /tmp/braidclaw-hostile)', 'a\n; exit 9', '\u001b]0;x\u0007', "'; DROP TABLE tasks"])(
    'a task named %j is only data',
    async (title) => {
      const { plane, place } = given()
      const { task_id } = await plane.add({ title, description: title })
      const script = `tr '\\0' '\\n' < /proc/self/cmdline > args.txt; env > env.txt; ${result({})}`
      expect(await place.worker(await plane.agent(), script, { once: true }).run()).toBe('completed')
      expect(await plane.task(task_id)).toMatchObject({ status: 'completed', title })
      const { store } = await place.host.changes()
      const set = store.show(store.list()[0]?.id ?? '')
      const texts = ['args.txt', 'env.txt'].map((path) => Buffer.from(set?.read(path, 'after', 100_000) ?? []).toString())
      expect(texts.every((text) => text !== '' && !text.includes(title))).toBe(true)
      expect(escapeHidden(place.said.join(''))).toBe(place.said.join(''))
    },
  )

  test('a runner that says it used fewer tokens than were settled does not make its run cheaper', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    const { task_id } = await plane.add()
    const metered = { ...port, run: (token: string) => spending(port.run(token), 5_000) }
    const script = `echo '{"type":"usage","tokens":1}'; ${result({})}`
    expect(await place.worker(metered, script, { once: true }).run()).toBe('completed')
    expect(await plane.task(task_id)).toMatchObject({ tokens_used: 5_000 })
  })

  test('a runner that says it used more tokens than there are fails its task with a sentence, and costs nobody the day', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    const { task_id } = await plane.add()
    const script = `echo '{"type":"usage","tokens":999999999999}'; ${result({})}`
    expect(await place.worker(port, script, { once: true }).run()).toBe('failed')
    const { status, error, tokens_used } = await plane.task(task_id)
    expect([status, tokens_used]).toEqual(['failed', 0])
    expect(error).toStartWith('no run can report more than 100000000 tokens (CONTROLPLANE_REPORT_TOKENS), and this report says 1000000000')
  })

  test('links, pipes and shut folders that a run leaves harm neither the workspace nor the next run', async () => {
    const { plane, place } = given()
    const port = await plane.agent()
    await plane.add({ max_attempts: 1 })
    const script = `ln -s /etc/passwd leak; ln -s ../../.. up; mkfifo pipe; mkdir -p shut/in; echo x > shut/in/f; chmod 000 shut; ${result({})}`
    await place.worker(port, script, { once: true }).run()
    await plane.add({ title: 'next' })
    expect(await place.worker(port, `echo fine > fine.txt; ${result({})}`, { once: true }).run()).toBe('completed')
    expect(readdirSync(place.workspace)).toEqual(['notes.md'])
    const { store } = await place.host.changes()
    const denied = store.list().find(({ about }) => about.run === 'RUN-001')
    if (denied) expect(denied.review?.verdict).not.toBe('apply')
  })

  test('a flood of output ends neither the run nor the log of the plane', async () => {
    const { plane, place } = given()
    await plane.add()
    const script = `head -c 30000000 /dev/zero | tr '\\0' x; echo; ${result({ output: 'after the flood' })}`
    expect(await place.worker(await plane.agent(), script, { once: true }).run()).toBe('completed')
    expect((await plane.run()).log_bytes).toBeLessThanOrEqual(8 * 1024 * 1024)
    expect((await plane.task('TASK-001')).result).toMatchObject({ output: 'after the flood' })
  })
})

/** A run whose model calls cost this much, as the pass-through of the control plane settles them. */
function spending(run: ReturnType<Awaited<ReturnType<TestPlane['agent']>>['run']>, tokens: number) {
  const paid = run.reserve({ tokens, purpose: 'model' }).then(({ reservation_id }) => run.settle({ reservation_id, tokens, model: 'm' }))
  const activity: typeof run.activity = (post) => paid.then(() => run.activity(post))
  return { ...run, activity }
}
