import { expect, test } from 'bun:test'
import { baseUrlOf } from './provider-settings.ts'

test('an address loses the slashes it ends with, and no others', () => {
  const of = (baseUrl: string) => baseUrlOf({ kind: 'openai-compatible', model: 'm', baseUrl })
  const urls = ['http://a/v1', 'http://a/v1/', 'http://a//v1///', '/', '']
  expect(urls.map(of)).toEqual(['http://a/v1', 'http://a/v1', 'http://a//v1', '', ''])
})
