/** Through the real executable: a picture reaches each wire, stays in the record, and a model that takes only text gets a note. */

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'
import { type Dialect, dialects } from '../support/dialects.ts'
import { jpeg, png } from '../support/picture.ts'
import { type Fake, sends, startFake } from '../support/vendor-fake.ts'

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')

function configured(home: Nest, far: Fake, kind: string, more = ''): void {
  const provider = `[providers.models.far]\nkind = "${kind}"\nmodel = "m"\nbase_url = "${far.url}"\nmax_retries = 0\n${more}`
  home.config(`default_provider = "far"\nworkspace_dir = "${home.workspace}"\n[providers]\n${provider}`)
}

const env = { ANTHROPIC_API_KEY: 'sk-ant-planted-0123456789', OPENAI_API_KEY: 'sk-planted-0123456789' }

/** How each wire spells a picture of a message; those of results are spelled alike. */
const spelled: { readonly [kind in Dialect['kind']]: (data: string, type: string) => object } = {
  'openai-compatible': (data, type) => ({ type: 'image_url', image_url: { url: `data:${type};base64,${data}` } }),
  openai: (data, type) => ({ type: 'input_image', image_url: `data:${type};base64,${data}` }),
  anthropic: (data, type) => ({ type: 'image', source: { type: 'base64', media_type: type, data } }),
}

for (const dialect of dialects)
  test(`${dialect.kind}: a picture of the person, one that the model reads, and both again in the next turn`, async () => {
    using far = stopping(
      startFake((_, n) => {
        const calls = n === 0 ? [{ id: 'call_1', name: 'file_read', args: ['{"path":"b.jpg"}'] }] : undefined
        return sends(dialect.events(calls ? { calls } : { text: ['I see.'] }))
      }),
    )
    using home = nest()
    configured(home, far.fake, dialect.kind)
    const [a, b] = [png(), await jpeg()]
    writeFileSync(join(home.workspace, 'a.dat'), a)
    writeFileSync(join(home.workspace, 'b.jpg'), b)
    const first = await home.run(['agent', '--image', 'a.dat', '-m', 'what is it'], { env })
    expect([first.code, first.stdout]).toEqual([0, expect.stringContaining('I see.')])
    const person = spelled[dialect.kind](base64(a), 'image/png')
    const result = spelled[dialect.kind](base64(b), 'image/jpeg')
    /** Anthropic's marks of the cache stand in some blocks. */
    const sent = () => far.fake.asked.map(({ text }) => text.replaceAll(',"cache_control":{"type":"ephemeral"}', ''))
    expect(sent()[0]).toContain(JSON.stringify(person))
    expect(sent()[0]).not.toContain(base64(b))
    expect(sent()[1]).toContain(JSON.stringify(result))
    expect((await home.run(['agent', '-c', '-m', 'again'], { env })).code).toBe(0)
    for (const image of [person, result]) expect(sent()[2]).toContain(JSON.stringify(image))
    const [, before] = JSON.parse((await home.run(['run', 'list', '--json'])).stdout)
    const shown = await home.run(['run', 'show', before.runId, '--json'])
    const replayed = await home.run(['replay', before.runId])
    expect([shown.code, replayed.code, shown.stdout]).toEqual([0, 0, expect.stringContaining('"sha256"')])
    expect(shown.stdout).not.toContain(base64(a))
  })

function stopping(fake: Fake) {
  return { fake, [Symbol.dispose]: () => fake.stop() }
}

test('a fork sends the pictures again, also without the original, and an export says that it has none', async () => {
  const [dialect] = dialects
  using far = stopping(
    startFake((_, n) => {
      const calls = n === 0 ? [{ id: 'call_1', name: 'file_read', args: ['{"path":"b.jpg"}'] }] : undefined
      return sends(dialect?.events(calls ? { calls } : { text: ['I see.'] }) ?? [])
    }),
  )
  using home = nest()
  configured(home, far.fake, 'openai-compatible')
  const [a, b] = [png(), await jpeg()]
  writeFileSync(join(home.workspace, 'a.png'), a)
  writeFileSync(join(home.workspace, 'b.jpg'), b)
  const json = async (...words: string[]) => JSON.parse((await home.run([...words, '--json'])).stdout)
  await home.run(['agent', '--image', 'a.png', '-m', 'what is it'])
  await home.run(['agent', '-c', '-m', 'and without one'])
  const [original] = await json('session', 'list')
  const copy = await json('session', 'fork', 'last')
  expect((await home.run(['session', 'delete', original.conversationId, '--yes'])).code).toBe(0)
  expect((await home.run(['agent', '--resume', copy.conversationId, '-m', 'again'])).code).toBe(0)
  for (const bytes of [a, b]) expect(far.fake.asked.at(-1)?.text).toContain(base64(bytes))

  const exported = await json('session', 'export', copy.conversationId)
  const [asked, , read] = exported.turns[0].messages
  for (const message of [asked, read]) expect(message.content).toEndWith('\n[1 picture of this message: not in the file]')
  writeFileSync(join(home.workspace, 'talk.json'), JSON.stringify(exported))
  expect((await home.run(['session', 'import', 'talk.json'])).code).toBe(0)
  expect((await json('session', 'export', 'last')).turns).toEqual(exported.turns)
  expect((await home.run(['agent', '-c', '-m', 'and now'])).code).toBe(0)
  expect(far.fake.asked.at(-1)?.text).not.toContain(base64(a))
  for (const words of [
    ['rebuild', '--check'],
    ['receipt', 'verify', '--deep'],
  ])
    expect((await home.run(words)).code).toBe(0)
})

test('the filter sends pictures of -a and of stdin, with the words', async () => {
  const [dialect] = dialects
  using far = stopping(startFake(() => sends(dialect?.events({ text: ['Two.'] }) ?? [])))
  using home = nest()
  configured(home, far.fake, 'openai-compatible')
  writeFileSync(join(home.workspace, 'a.png'), png())
  const picture = await jpeg()
  const { code, stdout } = await home.run(['filter', '-a', 'a.png', 'how many?'], { stdin: picture })
  expect([code, stdout]).toEqual([0, 'Two.\n'])
  for (const bytes of [png(), picture]) expect(far.fake.asked[0]?.text).toContain(base64(bytes))
  expect(far.fake.asked[0]?.text).toContain('how many?')
})

test('a model that takes only text gets a note in place of the picture, and the person one line', async () => {
  const [dialect] = dialects
  using far = stopping(startFake(() => sends(dialect?.events({ text: ['Hm.'] }) ?? [])))
  using home = nest()
  configured(home, far.fake, 'openai-compatible')
  writeFileSync(join(home.home, '.braidclaw', 'models.toml'), '[far.m]\nsees = ["text"]\n')
  writeFileSync(join(home.workspace, 'a.png'), png())
  const { code, stdout, stderr } = await home.run(['filter', '--image', 'a.png', 'look'])
  expect([code, stdout]).toEqual([0, 'Hm.\n'])
  expect(stderr.split('\n').filter((line) => line.startsWith('note: far/m takes only text: 1 picture not sent'))).toHaveLength(1)
  expect(far.fake.asked[0]?.text).toContain('[1 picture not shown: this model takes only text')
  expect(far.fake.asked[0]?.text).not.toContain('image_url')
})

test('a server that refuses pictures is asked once more without them; another refusal stays one', async () => {
  const [dialect] = dialects
  using far = stopping(
    startFake(({ text }) => {
      if (!text.includes('image_url')) return sends(dialect?.events({ text: ['Hm.'] }) ?? [])
      return new Response(dialect?.errorBody('invalid_request_error', 'image input is not supported by this model'), { status: 400 })
    }),
  )
  using home = nest()
  configured(home, far.fake, 'openai-compatible')
  writeFileSync(join(home.workspace, 'a.png'), png())
  const { code, stdout, stderr } = await home.run(['agent', '--image', 'a.png', '-m', 'look'])
  expect([code, stdout, far.fake.asked.length]).toEqual([0, 'Hm.\n', 2])
  expect(stderr).toContain('refused the picture')
})

test('a picture that the home does not keep any more is named, and the conversation goes on', async () => {
  const [dialect] = dialects
  using far = stopping(startFake(() => sends(dialect?.events({ text: ['Hm.'] }) ?? [])))
  using home = nest()
  configured(home, far.fake, 'openai-compatible', '')
  writeFileSync(join(home.workspace, 'a.png'), png())
  expect((await home.run(['agent', '--image', 'a.png', '-m', 'look'])).code).toBe(0)
  const { Database } = await import('bun:sqlite')
  using database = new Database(join(home.home, '.braidclaw', 'memory.sqlite'))
  database.run('DELETE FROM results')
  expect((await home.run(['agent', '-c', '-m', 'again'])).code).toBe(0)
  expect(far.fake.asked[1]?.text).toContain('1 picture of this message: not kept any more')
})
