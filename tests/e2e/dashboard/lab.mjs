// The service on the made-up lab, in a browser: nothing in it depends on what a probe finds.

import { launch, Tab } from './browser.mjs';
import { freePort, Product, Service } from './product.mjs';

export class Lab {
  /** options: of the browser's context */
  async open(options) {
    this.product = new Product();
    await this.product.makeStore(0, 0, 0);
    this.service = new Service(this.product, await freePort());
    await this.service.start();
    this.browser = await launch();
    this.tab = await Tab.open(this.browser, this.service.url, options);
  }

  async close() {
    await this.browser?.close();
    await this.service?.stop();
    this.product?.end();
  }
}
