// Alerts over HTTP: how it stands with every threshold.
import type { Route } from '@sluice/rest';
import type { Alerts } from './alerts.js';

export function alertRoutes(alerts: Pick<Alerts, 'list'>): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/alerts',
      summary: 'Thresholds, what is measured, and which of them are crossed.',
      answers: '200 {items, next}',
      needs: 'viewer',
      of: 'installation',
      handle: async () => ({ items: await alerts.list(), next: null }),
    },
  ];
}
