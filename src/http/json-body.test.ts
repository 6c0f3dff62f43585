import { expect, test } from 'bun:test'
import { bodyLimits, readJsonBody } from './json-body.ts'

const read = (text: string, anyText: boolean) =>
  readJsonBody(new Request('http://x/', { method: 'POST', body: text, headers: { 'content-type': 'application/json' } }), {
    ...bodyLimits,
    anyText,
  })

test('a body without a content type is JSON only when a bearer token comes with it, and another type is never JSON', async () => {
  const post = (headers: Record<string, string>) =>
    readJsonBody(new Request('http://x/', { method: 'POST', body: new TextEncoder().encode('{"a":1}'), headers }))
  const without: Record<string, string>[] = [{}, { authorization: 'Basic abc' }, { cookie: 'a=b' }]
  for (const headers of without) await expect(post(headers)).rejects.toMatchObject({ status: 415, code: 'not_json' })
  await expect(post({ authorization: 'Bearer abc', 'content-type': 'text/plain' })).rejects.toMatchObject({ status: 415 })
  expect((await post({ authorization: 'Bearer abc' })).value).toEqual({ a: 1 })
})

test('a server that keeps texts in a database refuses those that it could not give back', async () => {
  for (const text of ['{"a":"x\\u0000y"}', '{"a":["\\ud800"]}', '{"\\uDC00":1}', '"\\ud83d"', '{"a":{"b":"\\\\\\u0000"}}'])
    await expect(read(text, false)).rejects.toMatchObject({ status: 400, code: 'bad_text' })
  for (const text of ['{"a":"\\ud83d\\ude00 \\\\u0000 \\\\ud800"}', '{"a":"😀"}', '[]'])
    expect(await read(text, false)).toEqual({ text, value: JSON.parse(text) })
  expect((await read('{"a":"\\u0000"}', true)).text).toBe('{"a":"\\u0000"}')
})
