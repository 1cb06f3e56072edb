"use strict";

const place = document.getElementById("swagger-ui");

SwaggerUIBundle({
  url: place.dataset.schema,
  domNode: place,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  // A key that is typed in here is forgotten with the page.
  persistAuthorization: false,
  // By default Swagger UI sends the document's address to a validator on the Internet.
  validatorUrl: null,
});
